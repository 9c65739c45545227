#include "calibrate/calibration.hpp"

#include <fmt/format.h>

#include <cctype>
#include <memory>

#include "calibrate/device_file.hpp"
#include "calibrate/predicted.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/measured_files.hpp"
#include "cli/write_file.hpp"
#include "formats/source.hpp"
#include "model/printable.hpp"
#include "report/part_views.hpp"

namespace attnsim::cli {
namespace {

struct calibrate_flags {
  std::vector<std::string> measurements, logs;
  std::string device, cluster, out, name, source, report;
  bool quiet = false;
};

std::string list(const char* title, const std::vector<std::string>& lines) {
  auto text = lines.empty() ? "" : fmt::format("{}\n", title);
  for (const auto& line : lines) text += fmt::format("  {}\n", printable(line));
  return text;
}

report::section list_section(const char* title, const std::vector<std::string>& lines) {
  report::section made{.title = title, .rows = report::table({""})};
  for (const auto& line : lines) made.rows.add({line});
  return made;
}

/// What was fitted to what, and the profile held against the same points.
report::page page_of(const calibration& done, const std::vector<measurement_set>& sets) {
  std::vector<compared_point> points;
  for (const auto& set : sets) {
    if (set.on == nullptr) continue;
    auto c = *set.on;
    c.device = done.profile;
    for (const auto& m : set.data.points) {
      if (m.rounds() > 0) points.push_back(compared(m, c));
    }
  }
  report::page page{.title = "Calibration: " + done.profile.name,
                    .answer = fmt::format("{} parameters fitted, {} kept from the prior",
                                          done.fitted.size(), done.kept.size()),
                    .warnings = done.warnings,
                    .sections = report::sections_of(points),
                    .result = {{"schema", "attnsim.calibration.1"},
                               {"profile", done.profile.name},
                               {"fitted", done.fitted},
                               {"kept", done.kept},
                               {"outliers", done.outliers},
                               {"warnings", done.warnings}}};
  page.sections.push_back(list_section("Fitted", done.fitted));
  page.sections.push_back(list_section("Kept from the prior", done.kept));
  page.sections.push_back(list_section("Far off: these points count little", done.outliers));
  return page;
}

/// What every kernel and the profile itself are from: date, cards, and the libraries' versions.
std::string origin(const std::vector<measurement_set>& sets) {
  if (sets.empty()) return "nccl-tests logs (attnsim calibrate)";
  auto e = sets.front().data.environment;
  const auto take = [&](const char* key) {
    const auto found = e.extract(key);
    return found ? found.mapped() : std::string("?");
  };
  auto text = fmt::format("measured {} on {} x {}", take("date"), take("cards"), take("card"));
  for (const auto* other : {"cores", "driver", "processor"}) e.erase(other);
  for (const auto& [name, version] : e) {
    if (std::islower(static_cast<unsigned char>(name.front())))
      text += fmt::format(", {} {}", name, version);
  }
  return text + " (attnsim measure, calibrate)";
}

std::vector<named_file> input_files(const calibrate_flags& flags) {
  std::vector<named_file> files{{"--device", flags.device}, {"--cluster", flags.cluster}};
  const auto add = [&](const char* flag, const std::vector<std::string>& located) {
    for (const auto& text : located) {
      const auto f = split_at_cluster(text);
      files.insert(files.end(), {{flag, f.file}, {flag, f.cluster}});
    }
  };
  add("--measurements", flags.measurements);
  add("--nccl-tests", flags.logs);
  return files;
}

void run(const calibrate_flags& flags) {
  check_files({{"--out", flags.out}, {"--report", flags.report}}, input_files(flags));
  cluster_shelf clusters;
  std::vector<measurement_set> sets;
  std::vector<log_set> logs;
  const auto on = [&](const located_file& f) {
    return clusters.find(f.cluster.empty() ? flags.cluster : f.cluster);
  };
  for (const auto& text : flags.measurements) {
    const auto f = split_at_cluster(text);
    sets.push_back({f.file, read_measurements(f.file, formats::read_source(f.file).text), on(f)});
  }
  for (const auto& text : flags.logs) {
    const auto f = split_at_cluster(text);
    const auto log = formats::read_source(f.file);
    logs.push_back({f.file, read_nccl_tests(log.name, log.text), on(f)});
    if (!logs.back().on)
      throw input_error("--nccl-tests", text, "expected LOG@CLUSTER, or --cluster for all");
  }
  auto done = calibrate(parse_flag("--device", flags.device, read_device_file), sets, logs);
  done.profile.name = flags.name.empty() ? flags.device : flags.name;
  const auto from = flags.source.empty() ? origin(sets) : flags.source;
  for (const auto& set : sets) {
    for (const auto& m : set.data.points) {
      const auto* p = std::get_if<kernel_point>(&m.what);
      if (!p) continue;
      for (auto& k : done.profile.kernels) {
        if (k.name == p->kernel) k.source = from;
      }
    }
  }
  std::vector<std::string> notes{"Calibrated: " + from};
  for (const auto& line : done.fitted) notes.push_back("fitted " + line);
  for (const auto& line : done.kept) notes.push_back("kept " + line);
  write_file("--out", flags.out, to_yaml(done.profile, notes));
  if (!flags.report.empty()) write_file("--report", flags.report, page_of(done, sets).html());
  if (flags.quiet) return;
  fmt::print("{}{}{}{}", list("fitted", done.fitted), list("kept from the prior", done.kept),
             list("far off (left little weight)", done.outliers), list("warnings", done.warnings));
  fmt::print("wrote {}; next: attnsim compare CLUSTER HELD_OUT --device {}\n", flags.out,
             flags.out);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto flags = std::make_shared<calibrate_flags>();
  auto* command = app.add_subcommand("calibrate", "fit a device profile to measurements");
  command->add_option("--measurements", flags->measurements,
                      "files of attnsim measure, each FILE or FILE@CLUSTER, the cluster it ran on");
  command->add_option("--nccl-tests", flags->logs,
                      "logs or CSV of nccl-tests, each FILE or FILE@CLUSTER");
  command->add_option("--device", flags->device, "the prior: a shipped profile or a file")
      ->required();
  command->add_option("--cluster", flags->cluster, "for inputs that name none");
  command->add_option("--out", flags->out, "the profile to write")->required();
  command->add_option("--name", flags->name, "its name (default: that of --device)");
  command->add_option("--source", flags->source, "its source (default: card, date and libraries)");
  add_report(*command, flags->report);
  command->add_flag("--quiet", flags->quiet, "write only");
  command->footer(
      "Example:\n"
      "  attnsim calibrate --device h100-sxm5 --measurements measured.json@my-cluster.yaml --out "
      "my-h100.yaml");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
