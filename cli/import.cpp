#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/numbers.hpp"
#include "cli/write_file.hpp"
#include "formats/cluster_file.hpp"
#include "model/printable.hpp"
#include "model/topology_files.hpp"

namespace attnsim::cli {
namespace {

constexpr int most_devices_per_host = 1024;

struct import_flags {
  std::vector<std::string> files;
  std::string as, name, device, nic_bandwidth, devices_per_host, nodes, fabric, out;
  bool quiet = false;
};

formats::settings read_settings(const import_flags& flags) {
  formats::settings given{.device = flags.device};
  if (!flags.nic_bandwidth.empty()) {
    given.nic_rate = parse_flag("--nic-bandwidth", flags.nic_bandwidth, parse<bandwidth>);
    if (given.nic_rate <= bandwidth{})
      throw input_error("--nic-bandwidth", flags.nic_bandwidth, "expected more than zero");
  }
  if (!flags.devices_per_host.empty()) {
    const auto devices = parse_count("--devices-per-host", flags.devices_per_host);
    if (devices > most_devices_per_host) {
      throw input_error("--devices-per-host", flags.devices_per_host,
                        fmt::format("expected at most {}", most_devices_per_host));
    }
    given.devices_per_host = static_cast<int>(devices);
  }
  if (!flags.device.empty())
    parse_flag("--device", flags.device,
               [](const auto& name) { return find_topology_file("devices", name); });
  return given;
}

/// A file, standard input, or a shipped cluster.
std::string find_file(const std::string& name) {
  const auto shipped = shipped_clusters();
  const bool is_shipped = std::find(shipped.begin(), shipped.end(), name) != shipped.end();
  return is_shipped ? find_topology_file("clusters", name) : name;
}

std::vector<named_file> input_files(const import_flags& flags) {
  std::vector<named_file> files{{"--device", flags.device}};
  for (const auto& file : flags.files) files.push_back({"FILE", find_file(file)});
  return files;
}

void run(const import_flags& flags) {
  const auto given = read_settings(flags);
  check_files({{"--out", flags.out}}, input_files(flags));
  std::vector<formats::topology> read;
  for (const auto& file : flags.files) {
    read.push_back(formats::read_topology(formats::read_source(find_file(file)), given, flags.as));
  }
  const auto machine = formats::combine(std::move(read), given);
  const auto stem = std::filesystem::path(flags.files.front()).stem().string();
  const auto file = formats::write_cluster_file(
      machine, {.name = flags.name.empty() ? stem : flags.name,
                .fabric = flags.fabric,
                .nodes = flags.nodes.empty() ? 0 : parse_count("--nodes", flags.nodes)});
  if (!flags.quiet) {
    for (const auto& line : file.warnings) fmt::print(stderr, "warning: {}\n", printable(line));
  }
  flags.out.empty() ? fmt::print("{}", file.text) : write_file("--out", flags.out, file.text);
}

void print_importers() {
  fmt::print("| format | files | read | assumed | refused |\n|---|---|---|---|---|\n");
  for (const auto& i : formats::known_importers())
    fmt::print("| `{}` | {} | {} | {} | {} |\n", i.name, i.what, i.reads, i.assumes, i.refuses);
}

}  // namespace

void add_import(CLI::App& topology) {
  auto flags = std::make_shared<import_flags>();
  auto* command = topology.add_subcommand("import", "other programs' files into a cluster file");
  std::string formats_help = "one of:";
  for (const auto& i : formats::known_importers())
    formats_help += fmt::format("\n  {}: {}", i.name, i.what);
  command
      ->add_option("FILE", flags->files,
                   "node files, one file of the fabric; - for standard input; a shipped cluster "
                   "stands for its node")
      ->required();
  command->add_option("--as", flags->as, formats_help);
  command->add_option("--name", flags->name, "of the cluster (default: the first file's)");
  command->add_option("--device", flags->device, "the devices' shipped profile");
  command->add_option("--nic-bandwidth", flags->nic_bandwidth,
                      "of a NIC whose speed no file tells, such as '400 Gb/s'");
  command->add_option("--devices-per-host", flags->devices_per_host,
                      "devices of a host that no file describes");
  command->add_option("--nodes", flags->nodes, "number of nodes like the described one");
  command->add_option("--fabric", flags->fabric,
                      "the fabric line, such as '{kind: rail-optimized, nodes_per_leaf: 32}'");
  command->add_option("--out", flags->out, "write the cluster file here");
  add_quiet(*command, flags->quiet);
  command->footer(
      "Examples:\n"
      "  nvidia-smi topo -m | attnsim topology import - --nic-bandwidth '400 Gb/s' --out my.yaml\n"
      "  attnsim topology import topo.xml --nodes 16 --fabric '{kind: fat-tree, nodes_per_leaf: "
      "16}'\n"
      "  attnsim topology import topo.xml topology.conf --out cluster.yaml");
  command->callback([flags] { run(*flags); });
  auto* known = topology.add_subcommand(
      "formats", "what import reads, assumes and refuses, as the table of docs/inputs.md");
  add_quiet(*known, flags->quiet);
  known->callback([flags] { print_importers(); });
}

}  // namespace attnsim::cli
