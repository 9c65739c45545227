#include "validate/validate.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <sstream>

#include "calibrate/predicted.hpp"
#include "cli/commands.hpp"
#include "cli/exit.hpp"
#include "cli/flags.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/run_case.hpp"
#include "cli/trace.hpp"
#include "cli/validate_flags.hpp"
#include "cli/write_file.hpp"
#include "kernels/backends.hpp"
#include "model/error.hpp"
#include "model/spelling.hpp"
#include "report/comparison.hpp"
#include "report/recorded.hpp"
#include "report/results.hpp"
#include "validate/transports/mpi.hpp"
#include "validate/transports/nccl.hpp"
#include "validate/transports/rendezvous.hpp"

namespace attnsim::cli {
namespace {

using nlohmann::ordered_json;
using validate::emulation;
using validate::part_time;
using validate::validation;

emulation parse_emulation(const std::string& text) {
  if (text == "none") return emulation::none;
  if (text == "waits") return emulation::waits;
  if (text == "both") return emulation::computes_and_waits;
  throw input_error("--emulate", text, expected_one_of(text, {"none", "waits", "both"}));
}

/// Numbers of all passes: the worst error.
ordered_json numerics_of(const validation& v) {
  validate::numerics worst{.passed = v.passed};
  bool computed = false;
  for (const auto& p : v.passes) {
    computed = computed || p.computed;
    worst.tolerance = std::max(worst.tolerance, p.numbers.tolerance);
    worst.max_error = std::max(worst.max_error, p.numbers.max_error);
    worst.relative_error = std::max(worst.relative_error, p.numbers.relative_error);
  }
  if (!computed) return nullptr;
  return {{"max_error", worst.max_error},
          {"relative_error", worst.relative_error},
          {"tolerance", worst.tolerance},
          {"passed", worst.passed}};
}

ordered_json measured_of(const validation& v) {
  std::int64_t peak = 0;
  for (const auto& p : v.passes) peak = std::max(peak, p.measured_peak.value());
  return {{"time_s", v.total.measured.value()},
          {"compute_s", v.compute.measured.value()},
          {"exposed_communication_s", v.exposed_communication.measured.value()},
          {"peak_memory_bytes", peak}};
}

ordered_json runs_of(const validation& v) {
  ordered_json all;
  for (const auto& p : v.passes) {
    all[std::string(name_of(p.pass))] = {{"runs", p.durations.size()},
                                         {"median_within", validate::median_within(p.durations)},
                                         {"stopped_early", p.stopped_early}};
  }
  return all;
}

ordered_json parts_of(const validation& v) {
  auto parts = ordered_json::array();
  for (const auto& p : v.passes) {
    for (auto part : p.parts) {
      part.name = fmt::format("{} {}", name_of(p.pass), part.name);
      parts.push_back(cli::to_json(part));
    }
  }
  return parts;
}

ordered_json to_json(const validation& v, const prediction& predicted) {
  return {{"schema", "attnsim.validation.1"},
          {"numerics", numerics_of(v)},
          {"predicted", cli::to_json(predicted)},
          {"measured", measured_of(v)},
          {"runs", runs_of(v)},
          {"parts", parts_of(v)}};
}

/// How often each pass ran, and where that was not enough.
std::string measured_text(const validation& v) {
  std::string text;
  for (const auto& p : v.passes) {
    text += fmt::format("{}: median of {} runs, within {}{}\n", name_of(p.pass), p.durations.size(),
                        percent(validate::median_within(p.durations)),
                        p.stopped_early ? ": stopped early, give --repeats for more" : "");
  }
  return text;
}

std::string to_table(const validation& v) {
  std::string text;
  for (const auto& p : v.passes) {
    if (!p.computed) continue;
    text += fmt::format("{}: relative error {:.2e} (largest {:.2e}), tolerance {:.0e}: {}\n",
                        name_of(p.pass), p.numbers.relative_error, p.numbers.max_error,
                        p.numbers.tolerance, p.numbers.passed ? "passed" : "FAILED");
  }
  text_table table({"part", "predicted", "measured", "error"});
  const auto add = [&](const std::string& name, const part_time& part) {
    table.add({name, to_string(part.predicted), to_string(part.measured),
               fmt::format("{:+.1f} %", 100 * part.error())});
  };
  for (const auto& p : v.passes) {
    for (const auto& part : p.parts) add(fmt::format("{} {}", name_of(p.pass), part.name), part);
  }
  add("total", v.total);
  return text + table.str() + measured_text(v);
}

ordered_json to_json(const schedule& program, const timeline& t) {
  auto ranks = ordered_json::array();
  for (const auto& rank : t.ranks) {
    auto intervals = ordered_json::array();
    for (const auto& i : rank.intervals) {
      const auto& op = program.program[i.operation];
      intervals.push_back({{"operation", i.operation},
                           {"kind", name_of(op.kind)},
                           {"stream", program.streams[static_cast<std::size_t>(op.stream)]},
                           {"start_s", i.start.value()},
                           {"end_s", i.end.value()}});
    }
    ranks.push_back({{"rank", rank.rank}, {"intervals", std::move(intervals)}});
  }
  return {{"class_of_rank", t.class_of}, {"ranks", std::move(ranks)}};
}

/// Pass by pass, both from the same moment.
std::string trace_of(const validation& v) {
  trace t;
  seconds offset;
  for (const auto& p : v.passes) {
    t.add("predicted", p.program, p.predicted, offset);
    t.add("measured", p.program, p.measured, offset);
    offset += std::max(p.predicted.duration(), p.measured.duration());
  }
  return t.str();
}

/// Both runs, pass by pass from the same moment.
std::vector<report::recorded_pass> recorded(const validation& v) {
  std::vector<report::recorded_pass> passes;
  seconds start;
  for (const auto& p : v.passes) {
    passes.push_back({"predicted", p.program, p.predicted, start});
    passes.push_back({"measured", p.program, p.measured, start});
    start += std::max(p.predicted.duration(), p.measured.duration());
  }
  return passes;
}

/// The total with the prediction's interval, then the parts.
report::section times_of(const validation& v, const prediction& predicted) {
  std::vector<report::comparison> figures{{"", "total", v.total.measured.value(),
                                           v.total.predicted.value(), predicted.low.value(),
                                           predicted.high.value()}};
  for (const auto& p : v.passes) {
    for (const auto& part : p.parts) {
      figures.push_back(
          {std::string(name_of(p.pass)), part.name, part.measured.value(), part.predicted.value()});
    }
  }
  auto made = report::predicted_against("measured", "s", figures);
  made.note = "The total has the interval that the profile's stated uncertainties give.";
  return made;
}

report::section memory_of(const validation& v) {
  std::vector<report::comparison> figures;
  for (const auto& p : v.passes) {
    figures.push_back({"", std::string(name_of(p.pass)),
                       static_cast<double>(p.measured_peak.value()),
                       static_cast<double>(p.predicted_peak.value())});
  }
  auto made = report::predicted_against("measured", "B", figures);
  made.title = "Memory";
  return made;
}

report::page page_of(const cluster& c, const validation& v, const prediction& predicted) {
  report::page page{
      .title = fmt::format("Validation: attention on {}, {} ranks", c.name, predicted.ranks),
      .answer = fmt::format("{}: predicted {}, measured {} ({:+.1f} %); numbers {}",
                            report::name_of(predicted), to_string(v.total.predicted),
                            to_string(v.total.measured), 100 * v.total.error(),
                            v.passed ? "passed" : "FAILED"),
      .facts = {{"problem", report::problem_of(predicted.problem)},
                {"strategy", report::strategy_of(predicted)}},
      .warnings = predicted.warnings,
      .sections = {times_of(v, predicted)},
      .result = to_json(v, predicted)};
  const auto passes = recorded(v);
  page.sections.push_back(report::breakdown(passes));
  page.sections.push_back(report::critical_rank(passes));
  page.sections.push_back(memory_of(v));
  return page;
}

ordered_json timelines_of(const validation& v) {
  ordered_json all{{"schema", "attnsim.timelines.1"}};
  for (const auto& p : v.passes) {
    all[std::string(name_of(p.pass))] = {{"predicted", to_json(p.program, p.predicted)},
                                         {"measured", to_json(p.program, p.measured)}};
  }
  return all;
}

void print(const validation& v, const prediction& predicted, output_format format) {
  switch (format) {
    case output_format::json:
      return print_json(to_json(v, predicted));
    case output_format::table:
      return print_table(to_table(v));
    case output_format::csv:
      fmt::print("part,predicted_s,measured_s,error\n");
      for (const auto& part : parts_of(v)) {
        fmt::print("{}\n", csv_line(part["name"].get<std::string>(), part["predicted_s"].dump(),
                                    part["measured_s"].dump(), part["error"].dump()));
      }
  }
}

run_setting setting_of(const case_flags& flags) {
  const auto& b = kernels::find_backend(flags.kernel);
  return {.kernel = b.profile_kernel,
          .start = b.on_host     ? run_start::in_sequence
                   : flags.graph ? run_start::idle_graph
                                 : run_start::idle};
}

struct validated {
  run_setting setting;
  validation result;
  prediction predicted;
};

/// Says so where the device profile has no such kernel.
prediction predict(const cluster& c, const measured_run& run, const run_setting& setting,
                   int ranks) {
  auto made = attnsim::predict(c, run.problem, run.chosen, ranks, run.pass);
  if (setting.start != run_start::in_sequence && run.chosen.kernel != setting.kernel)
    made.warnings.push_back(
        fmt::format("{} has no kernel {}: predicted with {}", c.device.name, setting.kernel,
                    run.chosen.kernel.empty() ? "its first" : run.chosen.kernel));
  return made;
}

validated run_case(const validate_flags& flags, const cluster& c, validate::transport* through) {
  const auto emulates = parse_emulation(flags.emulate);
  const int ranks = ask::ranks_of(flags.cluster, c);
  const auto setting = setting_of(flags.run);
  const auto run = run_of(flags.run, setting, c, ranks);
  const validate::validation_request request{
      .on = c,
      .problem = run.problem,
      .chosen = run.chosen,
      .ranks = ranks,
      .pass = run.pass,
      .kernel = flags.run.kernel,
      .transport = flags.transport,
      .emulates = emulates,
      .mode = flags.run.graph ? validate::launch_mode::graph : validate::launch_mode::ahead,
      .checks = !flags.times_only,
      .repeats = repeats_of(flags),
      .time_out = time_out_of(flags)};
  auto v = through ? validate::validate(request, *through) : validate::validate(request);
  return {setting, std::move(v), predict(c, run, setting, ranks)};
}

void require_passed(bool passed) {
  if (!passed)
    throw failed_validation(
        "the numbers differ from single-device attention by more than the tolerance");
}

/// Adds what came out to the case's result. Whether its numbers passed.
bool run_attention_case(const validate_flags& flags, const cluster& c, validate::transport& through,
                        ordered_json& result) {
  const auto done = run_case(flags, c, &through);
  result["kernel"] = done.setting.kernel;
  result["start"] = name_of(done.setting.start);
  result.update(to_json(done.result, done.predicted));
  for (const auto& p : done.result.passes) {
    auto durations = ordered_json::array();
    for (const auto& d : p.durations) durations.push_back(d.value());
    result["durations_s"][std::string(name_of(p.pass))] = durations;
    result["timelines"][std::string(name_of(p.pass))] = to_json(p.program, p.measured);
  }
  return done.result.passed;
}

std::unique_ptr<validate::transport> join_for_cases(const validate_flags& flags) {
  if (flags.transport == "nccl")
    return validate::join_nccl({.time_out = time_out_of(flags), .blocking = true},
                               validate::find_place());
  if (flags.transport == "mpi") return validate::join_mpi(time_out_of(flags));
  throw input_error("--cases", flags.transport, "needs --transport mpi or nccl");
}

/// One job for all cases; each is printed as soon as it is done.
void run_cases(const validate_flags& common, const cluster& c) {
  std::istringstream file(formats::read_source(common.cases).text);
  const auto through = join_for_cases(common);
  bool passed = true;
  int failed = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    ordered_json result{{"case", line}};
    try {
      auto flags = common;  // beside those of the line
      flags.run = read_case(common.cases, line, common.run);
      passed = (flags.run.of_layer ? run_layer_case(flags, c, *through, result)
                                   : run_attention_case(flags, c, *through, result)) &&
               passed;
    } catch (const infeasible& e) {
      result["infeasible"] = e.what();
    } catch (const validate::transport_error&) {
      throw;
    } catch (const input_error&) {
      throw;
    } catch (const std::runtime_error& e) {
      result["failed"] = e.what();
      ++failed;
    }
    if (through->rank() != 0) continue;
    print_json(result, -1);
    std::fflush(stdout);
  }
  if (failed > 0)
    throw std::runtime_error(
        fmt::format("{} of the cases failed: \"failed\" in their lines says why", failed));
  require_passed(passed);
}

/// What is asked of a layer and is another scope's.
void require_scope(const validate_flags& flags) {
  if (flags.scope != "attention" && flags.scope != "layer")
    throw input_error("--scope", flags.scope, expected_one_of(flags.scope, {"attention", "layer"}));
  for (const auto& f : ask::step_fields()) {
    const auto text = f.write(flags.run.step);
    if (!text.empty() && flags.scope == "attention")
      throw input_error("--" + std::string(f.name), text, "expected with --scope layer");
  }
}

void run(validate_flags& flags) {
  const auto format = parse_format(flags.output.format);
  require_scope(flags);
  flags.run.of_layer = flags.scope == "layer";
  if (flags.run.of_layer) refuse_for_layer(flags);
  auto inputs = files_of(flags.cluster);
  inputs.push_back({"--cases", flags.cases});
  check_files(
      {{"--trace", flags.trace}, {"--timelines", flags.timelines}, {"--report", flags.report}},
      inputs);
  const auto c = ask::cluster_of(flags.cluster);
  if (!flags.cases.empty()) return run_cases(flags, c);
  if (!flags.run.question.sequence) throw input_error("--seq is required");
  if (flags.run.of_layer) return run_layer(flags, c, format);
  const auto done = run_case(flags, c, nullptr);
  if (done.result.rank == 0) {
    if (!flags.timelines.empty())
      write_file("--timelines", flags.timelines, timelines_of(done.result).dump(1) + "\n");
    if (!flags.trace.empty()) write_file("--trace", flags.trace, trace_of(done.result));
    if (!flags.report.empty())
      write_file("--report", flags.report, page_of(c, done.result, done.predicted).html());
    print(done.result, done.predicted, format);
  }
  require_passed(done.result.passed);
}

}  // namespace

void add_validate(CLI::App& app) {
  auto flags = std::make_shared<validate_flags>();
  flags->run.kernel = kernels::backends().front().name;
  auto* command = app.add_subcommand(
      "validate", "run a strategy for real; check its numbers and its predicted times");
  add_cluster(*command, flags->cluster);
  flags->run.add_to(*command);
  command
      ->add_option(
          "--scope", flags->scope,
          "attention, or layer: a whole layer of a model, forward and backward, cut by --tp, "
          "--cp, --dp and --shard as attnsim step has them")
      ->capture_default_str();
  flags->run.add_layer_to(*command);
  flags->output.add_to(*command);
  command->add_option("--transport", flags->transport, "inprocess (ranks are threads), mpi or nccl")
      ->capture_default_str();
  command
      ->add_option("--emulate", flags->emulate,
                   "none; waits: as long as CLUSTER's device would compute; both")
      ->capture_default_str();
  command->add_option(
      "--repeats", flags->repeats,
      "measured runs; the median counts (default: 5 to 30, until the median is known "
      "within 3 % or they have taken 5 s)");
  command
      ->add_option("--time-out", flags->time_out,
                   "seconds that an operation may wait for its peers")
      ->capture_default_str();
  command->add_flag("--times-only", flags->times_only,
                    "random inputs, numbers not checked: large problems in little time");
  command->add_option(
      "--cases", flags->cases,
      "many runs in one job: a file with the flags of one a line, '#' for comments; "
      "prints a JSON object a line");
  command->add_option("--trace", flags->trace,
                      "write both timelines, side by side, to this file, for ui.perfetto.dev");
  command->add_option("--timelines", flags->timelines,
                      "write predicted and measured timelines to this JSON file");
  add_report(*command, flags->report);
  command->footer(
      "Examples:\n"
      "  attnsim validate star --ranks 4 --seq 512 --heads 4 --head-dim 32 --schedule mesh --grid "
      "2x2\n"
      "  mpirun -np 4 attnsim validate star --ranks 4 --seq 512 --heads 4 --schedule ring "
      "--transport mpi\n"
      "  torchrun --no-python --nproc-per-node 2 attnsim validate dgx-h100 --ranks 2 --seq 16K "
      "--heads 32 "
      "--schedule ring --transport nccl --kernel cuda\n"
      "  attnsim validate star --ranks 2 --scope layer --model llama3.2-1b --seq 64 --tp 2 "
      "--times-only");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
