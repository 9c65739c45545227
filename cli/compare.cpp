#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>

#include "calibrate/ladder.hpp"
#include "calibrate/predicted.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/measured_files.hpp"
#include "cli/output.hpp"
#include "cli/run_case.hpp"
#include "cli/rungs.hpp"
#include "cli/write_file.hpp"
#include "formats/kineto.hpp"
#include "model/cost/placed_schedule.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "sim/simulator.hpp"

namespace attnsim::cli {
namespace {

using nlohmann::ordered_json;

struct compare_flags {
  std::string cluster, device;
  output_flags output;
  std::vector<std::string> measured;
  std::string points, traced, report;
};

/// Schedules of one problem: is the one predicted to be fastest the fastest? Those predicted alike to the last digit are one
/// program under several names (attention2d on one column is allgather): their measured times differ by chance.
class contest {
 public:
  void add(seconds predicted, double measured_s) { measured_[predicted].push_back(measured_s); }

  /// The fastest two differ by over 3 %.
  bool counts() const {
    auto times = means();
    if (times.size() < 2) return false;
    std::nth_element(times.begin(), times.begin() + 1, times.end());
    return times[1] > 1.03 * times[0];
  }
  bool named_right() const {
    const auto times = means();  // by ascending prediction
    return std::min_element(times.begin(), times.end()) == times.begin();
  }

 private:
  std::vector<double> means() const {
    std::vector<double> result;
    for (const auto& [predicted, times] : measured_)
      result.push_back(std::accumulate(times.begin(), times.end(), 0.0) /
                       static_cast<double>(times.size()));
    return result;
  }

  std::map<seconds, std::vector<double>> measured_;
};

/// What attnsim validate --cases measured of one case, in one run of it or several.
struct measured_case {
  std::string where;  ///< FILE:LINE of the first
  std::string line;
  const cluster* on = nullptr;
  std::map<std::string, std::vector<double>> durations;  ///< seconds, by pass
};

class comparison {
 public:
  explicit comparison(const compare_flags& flags) : flags_(flags) {}

  void add(const std::string& text) {
    const auto f = split_at_cluster(text);
    const auto& c =
        *clusters_.find(f.cluster.empty() ? flags_.cluster : f.cluster, {.device = flags_.device});
    if (f.file.ends_with(".jsonl")) return add_runs(f.file, c);
    const auto file = formats::read_source(f.file);
    file.text.find("\"traceEvents\"") == std::string::npos ? add_measurements(f.file, c)
                                                           : add_trace(file, c);
  }

  /// After the last file.
  void finish() {
    for (const auto& m : cases_) add(m);
  }

  const std::vector<ladder_point>& points() const { return points_; }

  std::pair<int, int> named_right() const {
    int right = 0, all = 0;
    for (const auto& [problem, c] : contests_) {
      all += c.counts();
      right += c.counts() && c.named_right();
    }
    return {right, all};
  }

 private:
  void add_measurements(const std::string& file, const cluster& c) {
    for (const auto& m : read_measurements(file).points) {
      if (m.rounds() == 0) continue;
      points_.push_back(compared(m, c));
    }
  }

  static std::vector<rank_timeline> passes_of(const formats::source& file,
                                              const formats::kineto_trace& traced,
                                              const schedule& program) {
    try {
      return formats::match_kernels(traced, program);
    } catch (const input_error& e) {
      throw input_error(file.name + ": " + e.what());
    }
  }

  /// A rank's trace of the PyTorch profiler against the predicted timeline of --case, operation by operation; medians over
  /// the passes that the trace holds.
  void add_trace(const formats::source& file, const cluster& c) {
    if (flags_.traced.empty())
      throw input_error(
          "--case", "",
          "expected the traced run's flags, as \"--seq 16K --heads 32 --schedule ring\"");
    const auto run = run_of(read_case("--case", flags_.traced), c, c.devices());
    if (run.pass == pass_kind::both)
      throw input_error("--case", flags_.traced,
                        "expected --pass forward or backward: what the trace holds");
    const placed_schedule question(run.on, run.problem,
                                   complete(run.chosen, run.problem, c.devices()), run.pass);
    const auto traced = formats::read_kineto(file);
    if (traced.rank >= c.devices())
      throw input_error(file.name, fmt::format("rank {}", traced.rank),
                        fmt::format("{} has {} devices", c.name, c.devices()));
    const auto passes = passes_of(file, traced, question.program());
    const auto predicted = simulate(question, {.record = true});
    const auto& own = predicted.ranks[static_cast<std::size_t>(
        predicted.class_of[static_cast<std::size_t>(traced.rank)])];
    std::map<std::uint32_t, std::vector<double>> times;
    std::vector<double> totals;
    for (const auto& pass : passes) {
      totals.push_back(pass.end.value());
      for (const auto& i : pass.intervals) times[i.operation].push_back((i.end - i.start).value());
    }
    const auto add = [&](const std::string& rung, const std::string& what, seconds time,
                         double share, const std::vector<double>& measured) {
      points_.push_back({rung, fmt::format("{}: rank {}, {}", file.name, traced.rank, what), time,
                         time * (1 - share), time * (1 + share), seconds(median(measured))});
    };
    const auto& device = c.device;
    double least_sure = device.uncertainty.compute;
    for (const auto& i : own.intervals) {
      if (!times.contains(i.operation)) continue;
      const auto kind = question.program().program[i.operation].kind;
      const auto what = fmt::format("operation {} ({})", i.operation, name_of(kind));
      const auto& communication = question.communication();
      const int pattern = communication.pattern_of(i.operation);
      const double share = pattern < 0
                               ? device.uncertainty.compute
                               : device.communication_uncertainty(communication.transport(pattern));
      least_sure = std::max(least_sure, share);
      add(pattern < 0           ? "kernels"
          : is_collective(kind) ? "collectives"
                                : "transfers",
          what, i.end - i.start, share, times[i.operation]);
    }
    add("schedules", flags_.traced, own.end, least_sure, totals);
  }

  /// Lines of attnsim validate --cases; what was run several times counts once, with all its times.
  void add_runs(const std::string& file, const cluster& c) {
    std::ifstream stream(file);
    if (!stream) throw input_error(file + ": cannot be read");
    int number = 0;
    for (std::string line; std::getline(stream, line);) {
      const auto where = fmt::format("{}:{}", file, ++number);
      const auto run = ordered_json::parse(line, nullptr, false);
      if (run.is_discarded() || !run.contains("case"))
        throw input_error(where, line.substr(0, 60), "expected an object with a case");
      if (!run.contains("durations_s")) continue;  // infeasible or failed
      auto& known = case_of(where, run["case"].get<std::string>(), c);
      for (const auto& [pass, list] : run["durations_s"].items()) {
        const auto times = list.get<std::vector<double>>();
        auto& all = known.durations[pass];
        all.insert(all.end(), times.begin(), times.end());
      }
    }
  }

  measured_case& case_of(const std::string& where, const std::string& line, const cluster& c) {
    for (auto& known : cases_) {
      if (known.on == &c && known.line == line) return known;
    }
    return cases_.emplace_back(measured_case{.where = where, .line = line, .on = &c});
  }

  void add(const measured_case& m) {
    const auto run = predict_case(m.where, m.line, *m.on);
    double measured = 0;
    for (const auto& [pass, times] : m.durations) measured += median(times);
    points_.push_back({"schedules", fmt::format("{}: {}", m.on->name, m.line), run.time, run.low,
                       run.high, seconds(measured)});
    contests_[m.on->name + problem_of(m.line)].add(run.time, measured);
  }

  /// A case's flags but those that choose a schedule.
  static std::string problem_of(const std::string& line) {
    std::string problem;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word == "--schedule" || word == "--grid") {
        words >> word;
      } else {
        problem += ' ' + word;
      }
    }
    return problem;
  }

  const compare_flags& flags_;
  cluster_shelf clusters_;
  std::vector<ladder_point> points_;
  std::vector<measured_case> cases_;
  std::map<std::string, contest> contests_;
};

std::string named_right(const comparison& done) {
  const auto [right, all] = done.named_right();
  return all == 0 ? ""
                  : fmt::format(
                        "fastest schedule named right in {} of {} problems whose fastest "
                        "two differ by over 3 %",
                        right, all);
}

std::string to_table(const comparison& done) {
  const auto named = named_right(done);
  return summary_of(done.points()).str() + (named.empty() ? "" : named + "\n");
}

std::string to_csv(const std::vector<ladder_point>& points) {
  std::string text = "rung,what,predicted_us,low_us,high_us,measured_us,error\n";
  for (const auto& p : points) {
    text += fmt::format("{},\"{}\",{:.4g},{:.4g},{:.4g},{:.4g},{:.4f}\n", p.rung, p.what,
                        p.predicted.value() * 1e6, p.low.value() * 1e6, p.high.value() * 1e6,
                        p.measured.value() * 1e6, p.error());
  }
  return text;
}

ordered_json to_json(const comparison& done) {
  auto rungs = ordered_json::array(), points = ordered_json::array();
  for (const auto& s : summarise(done.points())) {
    rungs.push_back({{"rung", s.rung},
                     {"points", s.points},
                     {"median_error", s.median},
                     {"percentile_95_error", s.percentile_95},
                     {"in_interval", s.inside}});
  }
  for (const auto& p : done.points()) {
    points.push_back({{"rung", p.rung},
                      {"what", p.what},
                      {"predicted_s", p.predicted.value()},
                      {"interval_s", {p.low.value(), p.high.value()}},
                      {"measured_s", p.measured.value()},
                      {"error", p.error()}});
  }
  const auto [right, all] = done.named_right();
  return {{"schema", "attnsim.comparison.1"},
          {"rungs", rungs},
          {"fastest_named_right", {{"right", right}, {"of", all}}},
          {"points", points}};
}

report::page page_of(const comparison& done, const std::string& cluster) {
  return {.title = "Predicted against measured: " + cluster,
          .answer = named_right(done),
          .sections = sections_of(done.points()),
          .result = to_json(done)};
}

std::vector<named_file> files_of(const compare_flags& flags) {
  std::vector<named_file> files{{"CLUSTER", flags.cluster}, {"--device", flags.device}};
  for (const auto& text : flags.measured) {
    const auto f = split_at_cluster(text);
    files.insert(files.end(), {{"MEASURED", f.file}, {"MEASURED", f.cluster}});
  }
  return files;
}

void run(const compare_flags& flags) {
  const auto format = parse_format(flags.output.format);
  check_files({{"--points", flags.points}, {"--report", flags.report}}, files_of(flags));
  comparison done(flags);
  for (const auto& text : flags.measured) done.add(text);
  done.finish();
  if (done.points().empty()) throw input_error("MEASURED: no points with samples");
  if (!flags.points.empty()) write_file("--points", flags.points, to_csv(done.points()));
  if (!flags.report.empty())
    write_file("--report", flags.report, page_of(done, flags.cluster).html());
  switch (format) {
    case output_format::table:
      return print_table(to_table(done));
    case output_format::csv:
      return fmt::print("{}", to_csv(done.points()));
    case output_format::json:
      return fmt::print("{}\n", to_json(done).dump(1));
  }
}

}  // namespace

void add_compare(CLI::App& app) {
  auto flags = std::make_shared<compare_flags>();
  auto* command = app.add_subcommand(
      "compare", "predictions against measurements, from kernels to whole schedules");
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
      "what a trace shows: flags of validate, as \"--seq 16K --heads 32 --pass forward\"");
  command->add_option("--points", flags->points, "write every point to this CSV");
  add_report(*command, flags->report);
  flags->output.add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
