#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "cli/commands.hpp"
#include "cli/findings.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "formats/installed_cards.hpp"
#include "model/cluster/cluster.hpp"
#include "model/topology_files.hpp"

namespace attnsim::cli {
namespace {

finding of_topologies() {
  const auto clusters = shipped_clusters(), devices = shipped_devices();
  if (clusters.empty() || devices.empty()) {
    return {"topologies", false,
            "no shipped clusters found: set ATTNSIM_TOPOLOGIES to the folder topologies of the "
            "sources"};
  }
  const auto file = find_topology_file("clusters", clusters.front());
  return {"topologies", true,
          fmt::format("{} clusters and {} devices, in {}", clusters.size(), devices.size(),
                      file.substr(0, file.rfind("/clusters/")))};
}

finding of_processors() {
  const auto cores = std::thread::hardware_concurrency();
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return {"processors", true,
          fmt::format("{} cores, {:.0f} GiB of memory", cores, memory / 1024 / 1024 / 1024)};
}

finding of_cards(const formats::installed_cards& cards) {
  const auto who = cards.name.empty() ? "PCI id " + formats::pci_name(cards.pci_id) : cards.name;
  const auto count = fmt::format("{} x {}", cards.count, who);
  if (cards.profile.empty()) {
    return {"cards", false,
            count + ": no device profile is shipped; measure and calibrate one from a near device"};
  }
  return {"cards", true, fmt::format("{}: device profile {}", count, cards.profile)};
}

std::vector<finding> examine() {
  std::vector<finding> all{
      {"program", true, "attnsim " ATTNSIM_VERSION}, of_topologies(), of_processors()};
  const auto cards = formats::find_installed_cards();
  for (const auto& kind : cards) all.push_back(of_cards(kind));
  if (cards.empty()) all.push_back({"cards", false, "no GPU of NVIDIA or AMD in this machine"});
#ifdef ATTNSIM_HAS_EXECUTION
  const auto execution = findings_of_execution();
  all.insert(all.end(), execution.begin(), execution.end());
#else
  all.push_back(
      {"measure, validate", false, "not in this build: configure with -DATTNSIM_VALIDATE=ON"});
#endif
  return all;
}

void print_findings(const std::vector<finding>& all, output_format format) {
  if (format == output_format::json) {
    nlohmann::ordered_json page{{"schema", "attnsim.doctor.1"}};
    for (const auto& f : all)
      page["findings"].push_back({{"what", f.what}, {"ready", f.ready}, {"says", f.says}});
    return print_json(page);
  }
  if (format == output_format::csv) {
    fmt::print("{}\n", csv_line("what", "ready", "says"));
    for (const auto& f : all) fmt::print("{}\n", csv_line(f.what, f.ready, f.says));
    return;
  }
  text_table table({"part", "ready", "what it is"});
  for (const auto& f : all) table.add({f.what, f.ready ? "yes" : "no", f.says});
  print_table(table.str());
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto flags = std::make_shared<output_flags>();
  auto* command = app.add_subcommand(
      "doctor", "what this build and this machine can do, and what is missing for the rest");
  flags->add_to(*command);
  command->callback([flags] { print_findings(examine(), parse_format(flags->format)); });
}

}  // namespace attnsim::cli
