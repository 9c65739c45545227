#include "cli/run_case.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "ask/traced_pass.hpp"
#include "calibrate/predicted.hpp"
#include "cli/mistyped.hpp"
#include "formats/kineto.hpp"
#include "model/error.hpp"
#include "model/median.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim::cli {
namespace {

std::vector<rank_timeline> passes_of(const formats::source& file,
                                     const formats::kineto_trace& traced, const schedule& program) {
  try {
    return formats::match_kernels(traced, program);
  } catch (const input_error& e) {
    throw input_error(file.name + ": " + e.what());
  }
}

run_setting setting_of(const std::string& where, const nlohmann::json& run) {
  if (!run.contains("kernel") || !run.contains("start"))
    throw input_error(where +
                      ": expected kernel, a device profile's name of what computed, and start");
  try {
    return {.kernel = run["kernel"].get<std::string>(),
            .start = parse_run_start(run["start"].get<std::string>())};
  } catch (const std::exception& e) {
    throw input_error(where + ": " + e.what());
  }
}

}  // namespace

void case_flags::add_to(CLI::App& app) {
  add_fields(app, question, ask::field_group::attention);
  add_fields(app, question, ask::field_group::strategy, {"kernel"});
  app.add_option("--kernel", kernel, "kernel back end that computes (an unknown name lists them)")
      ->capture_default_str();
  app.add_flag("--cuda-graph", graph, "launch each measured run as one CUDA graph");
}

void case_flags::add_layer_to(CLI::App& app) {
  for (const auto& f : ask::step_fields()) {
    if (f.group == ask::field_group::step && ask::find_field(f.name) == nullptr)
      add_field(app, step, f);
  }
}

namespace {

void parse(CLI::App& app, const std::string& where, const std::string& line) {
  app.name("a case");
  app.set_help_flag();
  try {
    app.parse(line, false);
  } catch (const CLI::ParseError& e) {
    throw input_error(where, line, mistake_in(app, e));
  }
}

}  // namespace

case_flags read_case(const std::string& where, const std::string& line, case_flags others) {
  auto flags = std::move(others);
  CLI::App app;
  flags.add_to(app);
  if (flags.of_layer) flags.add_layer_to(app);
  parse(app, where, line);
  return flags;
}

case_flags read_traced_case(const std::string& where, const std::string& line) {
  case_flags flags;
  CLI::App app;
  flags.add_to(app);
  add_field(app, flags.question, *ask::find_field("ranks"));
  parse(app, where, line);
  return flags;
}

measured_run run_of(const case_flags& flags, const run_setting& setting, const cluster& c,
                    int ranks) {
  auto chosen = ask::strategy_of(flags.question, ask::layer_of(flags.question));
  chosen.kernel = nearest_kernel(c.device, setting.kernel);
  chosen.start = setting.start;
  return {ask::problem_of(flags.question, layout_unit(chosen.tokens, ranks)), chosen,
          flags.question.pass};
}

ask::step_question layer_question(const case_flags& flags, const std::string& profile_kernel,
                                  const cluster& c) {
  for (const auto& f : ask::fields()) {
    const auto text = f.write(flags.question);
    if (!text.empty() && ask::find_step_field(f.name) == nullptr)
      throw input_error("--" + std::string(f.name), text, "expected without --scope layer");
  }
  for (const auto* of_step : {"global-batch", "vp", "expert-skew", "reserve"}) {
    const auto text = ask::find_step_field(of_step)->write(flags.step);
    if (!text.empty())
      throw input_error("--" + std::string(of_step), text,
                        "expected without --scope layer: it is of a whole step");
  }
  if (flags.question.dtype != data_type::bf16)
    throw input_error("--dtype", std::string(name_of(flags.question.dtype)),
                      "expected bf16 with --scope layer");
  auto q = flags.step;
  q.base = flags.question;
  q.base.kernel = nearest_kernel(c.device, profile_kernel);
  q.model = flags.question.model;
  q.base.model.clear();
  q.tensor = flags.question.tensor_parallel;
  q.base.tensor_parallel = {};
  return q;
}

std::string problem_of(const case_flags& flags) {
  return fmt::format("{} kernel={}{}", ask::written(flags.question, {"schedule", "grid"}),
                     flags.kernel, flags.graph ? " cuda-graph" : "");
}

void recorded_case::add(const recorded_case& again) {
  for (const auto& [pass, times] : again.durations) {
    auto& all = durations[pass];
    all.insert(all.end(), times.begin(), times.end());
  }
}

seconds recorded_case::time() const {
  seconds total;
  for (const auto& [pass, times] : durations) total += seconds(median(times));
  return total;
}

namespace {

std::map<std::string, std::map<std::string, double>> kinds_of(const nlohmann::json& layer) {
  std::map<std::string, std::map<std::string, double>> all;
  if (!layer.contains("passes")) return all;
  for (const auto& pass : layer["passes"]) {
    for (const auto& part : pass.at("parts"))
      all[pass.at("name").get<std::string>()][part.at("name").get<std::string>()] =
          part.at("measured_s").get<double>();
  }
  return all;
}

}  // namespace

std::vector<recorded_case> read_recorded_cases(const formats::source& file) {
  std::istringstream stream(file.text);
  std::vector<recorded_case> cases;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    const auto where = fmt::format("{}:{}", file.name, ++number);
    const auto run = nlohmann::json::parse(line, nullptr, false);
    if (run.is_discarded() || !run.contains("case"))
      throw input_error(where, line.substr(0, 60), "expected an object with a case");
    if (!run.contains("durations_s")) continue;  // infeasible or failed
    try {
      cases.push_back({.where = where,
                       .line = run["case"].get<std::string>(),
                       .setting = setting_of(where, run),
                       .of_layer = run.value("schema", "") == layer_schema});
      cases.back().durations = run["durations_s"].get<decltype(recorded_case::durations)>();
      if (cases.back().of_layer) cases.back().kinds = kinds_of(run);
    } catch (const nlohmann::json::exception&) {
      throw input_error(where, line.substr(0, 60),
                        "expected a case in text and, of each pass, a list of durations_s");
    }
  }
  return cases;
}

std::vector<compared_point> compare_trace(const formats::source& file, const std::string& line,
                                          const cluster& c) {
  if (line.empty())
    throw input_error(
        "--case", "",
        "expected the traced run's flags, as \"--seq 16K --heads 32 --schedule ring\"");
  const auto asked = read_traced_case("--case", line);
  const int ranks = ask::ranks_of(asked.question, c);
  const auto run = run_of(asked, {.kernel = asked.kernel}, c, ranks);
  if (run.pass == pass_kind::both)
    throw input_error("--case", line, "expected --pass forward or backward: what the trace holds");
  const placed_schedule predicted(c, run.problem, complete(run.chosen, run.problem, ranks),
                                  run.pass);
  const auto traced = formats::read_kineto(file);
  if (traced.rank >= ranks)
    throw input_error(file.name, fmt::format("rank {}", traced.rank),
                      fmt::format("expected one of the run's {} ranks", ranks));
  const auto passes = passes_of(file, traced, predicted.program());
  auto points = ask::compare_pass(predicted, traced.rank, passes, line);
  for (auto& p : points) p.what = fmt::format("{}: rank {}, {}", file.name, traced.rank, p.what);
  return points;
}

}  // namespace attnsim::cli
