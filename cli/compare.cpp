#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "ask/step.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/measured_files.hpp"
#include "cli/output.hpp"
#include "cli/run_case.hpp"
#include "cli/write_file.hpp"
#include "model/error.hpp"
#include "report/part_views.hpp"

namespace attnsim::cli {
namespace {

struct compare_flags {
  std::string cluster, device;
  output_flags output;
  std::vector<std::string> measured;
  std::string points, traced, report;
};

double doubt_of(ask::step_part kind, const cluster& c) {
  const bool moves = kind == ask::step_part::tensor || kind == ask::step_part::expert ||
                     kind == ask::step_part::data;
  return moves ? c.device.uncertainty.communication : c.device.uncertainty.compute;
}

class comparison {
 public:
  explicit comparison(const compare_flags& flags) : flags_(flags) {}

  void add(const std::string& text) {
    const auto f = split_at_cluster(text);
    const auto& c =
        *clusters_.find(f.cluster.empty() ? flags_.cluster : f.cluster, {.device = flags_.device});
    const auto file = formats::read_source(f.file);
    if (f.file.find(".jsonl") != std::string::npos) return add_cases(file, c);
    if (file.text.find("\"traceEvents\"") == std::string::npos) return add_measurements(file, c);
    for (auto& p : compare_trace(file, flags_.traced, c)) points_.push_back(std::move(p));
  }

  /// After the last file.
  report::compared_points done() {
    for (const auto& [on, measured] : cases_) add(*on, measured);
    return {points_, contests_.named_right()};
  }

 private:
  void add_measurements(const formats::source& file, const cluster& c) {
    for (const auto& m : read_measurements(file.name, file.text).points) {
      if (m.rounds() > 0) points_.push_back(compared(m, c));
    }
  }

  /// What was run several times counts once, with all its times.
  void add_cases(const formats::source& file, const cluster& c) {
    for (const auto& one : read_recorded_cases(file)) {
      const auto known = std::find_if(cases_.begin(), cases_.end(), [&](const auto& other) {
        return other.first == &c && other.second.line == one.line;
      });
      known == cases_.end() ? void(cases_.emplace_back(&c, one)) : known->second.add(one);
    }
  }

  void add_layer(const cluster& c, const recorded_case& measured) {
    const auto flags = read_case(measured.where, measured.line, {.of_layer = true});
    auto question = layer_question(flags, measured.setting.kernel, c);
    question.base.ranks = c.devices();
    ask::known_parts known(c);
    const auto p = ask::layer_of(question, c, read_transformer(question.model), known,
                                 ask::layer_runner::executor);
    const auto what = fmt::format("{}: {}", c.name, measured.line);
    points_.push_back({"layers", what, p.time, p.low, p.high, measured.time()});
    for (const auto& [pass, kinds] : measured.kinds) {
      const auto& predicted = pass == name_of(pass_kind::forward) ? p.forward : p.backward;
      for (std::size_t i = 0; i < predicted.size(); ++i) {
        const auto kind = name_of(ask::step_part(i));
        const auto found = kinds.find(std::string(kind));
        if (found == kinds.end() || predicted[i] <= 0 || found->second <= 0) continue;
        points_.push_back(attnsim::compared(
            fmt::format("{} of layers", kind), fmt::format("{}, {}", what, pass),
            seconds(predicted[i]), doubt_of(ask::step_part(i), c), seconds(found->second)));
      }
    }
  }

  void add(const cluster& c, const recorded_case& measured) {
    if (measured.of_layer) return add_layer(c, measured);
    const auto flags = read_case(measured.where, measured.line);
    const auto run = run_of(flags, measured.setting, c, c.devices());
    const auto p = predict(c, run.problem, run.chosen, c.devices(), run.pass);
    points_.push_back({"schedules", fmt::format("{}: {}", c.name, measured.line), p.time, p.low,
                       p.high, measured.time()});
    contests_.add(c.name + ' ' + problem_of(flags), p.time, measured.time());
  }

  const compare_flags& flags_;
  cluster_shelf clusters_;
  std::vector<std::pair<const cluster*, recorded_case>> cases_;
  std::vector<compared_point> points_;
  ask::contests contests_;
};

std::vector<named_file> input_files(const compare_flags& flags) {
  std::vector<named_file> files{{"CLUSTER", flags.cluster}, {"--device", flags.device}};
  for (const auto& text : flags.measured) {
    const auto f = split_at_cluster(text);
    files.insert(files.end(), {{"MEASURED", f.file}, {"MEASURED", f.cluster}});
  }
  return files;
}

void run(const compare_flags& flags) {
  const auto format = parse_format(flags.output.format);
  check_files({{"--points", flags.points}, {"--report", flags.report}}, input_files(flags));
  comparison files(flags);
  for (const auto& text : flags.measured) files.add(text);
  const auto done = files.done();
  if (done.points.empty()) throw input_error("MEASURED: no points with samples");
  if (!flags.points.empty()) write_file("--points", flags.points, report::to_csv(done));
  if (!flags.report.empty())
    write_file("--report", flags.report, report::page_of(done, flags.cluster).html());
  print(done, format);
}

}  // namespace

void add_compare(CLI::App& app) {
  auto flags = std::make_shared<compare_flags>();
  auto* command = app.add_subcommand(
      "compare", "predictions against measurements, from kernels to whole schedules and layers");
  command->add_option("CLUSTER", flags->cluster, "what predicts: a shipped name or a file")
      ->required();
  command
      ->add_option(
          "MEASURED", flags->measured,
          "files of attnsim measure, of validate --cases (.jsonl), or traces of the PyTorch "
          "profiler; FILE@CLUSTER where it ran on another cluster")
      ->required();
  command->add_option("--device", flags->device, "a profile other than the clusters' own");
  command->add_option(
      "--case", flags->traced,
      "what a trace shows: flags of validate, as \"--ranks 2 --seq 16K --heads 32 --pass "
      "forward\"");
  command->add_option("--points", flags->points, "write every point to this CSV");
  add_report(*command, flags->report);
  flags->output.add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
