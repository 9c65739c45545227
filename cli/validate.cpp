#include "validate/validate.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/exit.hpp"
#include "cli/flags.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/write_file.hpp"
#include "model/error.hpp"
#include "validate/devices.hpp"
#include "validate/transports/rendezvous.hpp"

namespace attnsim::cli {
namespace {

using nlohmann::ordered_json;
using validate::emulation;
using validate::part_time;
using validate::validation;

struct validate_flags {
  cluster_flags cluster;
  workload_flags workload;
  strategy_flags strategy;
  output_flags output;
  std::string transport = "inprocess", kernel = "cpu", emulate = "none", repeats = "3",
              time_out = "60", timelines;
  bool graph = false;
};

emulation parse_emulation(const std::string& text) {
  if (text == "none") return emulation::none;
  if (text == "waits") return emulation::waits;
  if (text == "both") return emulation::computes_and_waits;
  throw input_error("--emulate", text, "expected one of: none, waits, both");
}

ordered_json to_json(const part_time& part) {
  return {{"name", part.name},
          {"predicted_s", part.predicted.value()},
          {"measured_s", part.measured.value()},
          {"error", part.error()}};
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

ordered_json parts_of(const validation& v) {
  auto parts = ordered_json::array();
  for (const auto& p : v.passes) {
    for (auto part : p.parts) {
      part.name = fmt::format("{} {}", name_of(p.pass), part.name);
      parts.push_back(to_json(part));
    }
  }
  return parts;
}

ordered_json to_json(const validation& v, const prediction& predicted) {
  return {{"schema", "attnsim.validation.1"},
          {"numerics", numerics_of(v)},
          {"predicted", cli::to_json(predicted)},
          {"measured", measured_of(v)},
          {"parts", parts_of(v)}};
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
  return text + table.str();
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
      return fmt::print("{}\n", to_json(v, predicted).dump(2));
    case output_format::table:
      return fmt::print("{}", to_table(v));
    case output_format::csv:
      fmt::print("part,predicted_s,measured_s,error\n");
      for (const auto& part : parts_of(v)) {
        fmt::print("{},{},{},{}\n", part["name"].get<std::string>(), part["predicted_s"].dump(),
                   part["measured_s"].dump(), part["error"].dump());
      }
  }
}

/// Empty: the CPU.
validate::device_source device_of(const validate_flags& flags) {
  if (flags.kernel == "cpu") return {};
  return [kernel = flags.kernel](int) {
    return validate::make_device(
        {.kernel = kernel, .local_rank = validate::find_place().local_rank});
  };
}

void run(const validate_flags& flags) {
  const auto format = parse_format(flags.output.format);
  const auto emulates = parse_emulation(flags.emulate);
  if (flags.kernel != "cpu" && flags.transport != "nccl")
    throw input_error("--kernel", flags.kernel, "needs --transport nccl; else expected cpu");
  if (flags.kernel == "cpu" && flags.transport == "nccl")
    throw input_error("--kernel", flags.kernel, "--transport nccl needs cuda or cudnn");
  if (flags.graph && flags.transport != "nccl")
    throw input_error("--cuda-graph: needs --transport nccl");
  const auto c = flags.cluster.read();
  const int ranks = flags.cluster.ranks_of(c);
  auto chosen = flags.strategy.read(parse_flag("--mask", flags.workload.mask, parse_mask));
  if (flags.kernel != "cpu") chosen.kernel = validate::profile_kernel(c.device, flags.kernel);
  const auto problem = flags.workload.read(layout_unit(chosen.tokens, ranks));
  const auto pass = flags.workload.read_pass();
  const auto v = validate::validate(
      {.on = c,
       .problem = problem,
       .chosen = chosen,
       .ranks = ranks,
       .pass = pass,
       .transport = flags.transport,
       .device = device_of(flags),
       .emulates = emulates,
       .mode = flags.graph ? validate::launch_mode::graph : validate::launch_mode::by_operation,
       .repeats = static_cast<int>(parse_count("--repeats", flags.repeats)),
       .time_out = std::chrono::seconds(parse_count("--time-out", flags.time_out))});
  if (v.rank == 0) {
    if (!flags.timelines.empty())
      write_file("--timelines", flags.timelines, timelines_of(v).dump(1) + "\n");
    print(v, predict(c, problem, chosen, ranks, pass), format);
  }
  if (!v.passed)
    throw failed_validation(
        "the numbers differ from single-device attention by more than the tolerance");
}

}  // namespace

void add_validate(CLI::App& app) {
  auto flags = std::make_shared<validate_flags>();
  auto* command = app.add_subcommand(
      "validate", "run a strategy for real; check its numbers and its predicted times");
  flags->cluster.add_to(*command);
  flags->workload.add_to(*command);
  flags->strategy.add_to(*command, true);
  flags->output.add_to(*command);
  command->remove_option(command->get_option("--kernel"));
  command->add_option("--transport", flags->transport, "inprocess (ranks are threads), mpi or nccl")
      ->capture_default_str();
  command->add_option("--kernel", flags->kernel, "what computes: cpu; with nccl: cuda or cudnn")
      ->capture_default_str();
  command
      ->add_option("--emulate", flags->emulate,
                   "none; waits: as long as CLUSTER's device would compute; both")
      ->capture_default_str();
  command->add_option("--repeats", flags->repeats, "measured runs; the median counts")
      ->capture_default_str();
  command
      ->add_option("--time-out", flags->time_out,
                   "seconds that an operation may wait for its peers")
      ->capture_default_str();
  command->add_flag("--cuda-graph", flags->graph,
                    "launch each measured run as one CUDA graph (nccl)");
  command->add_option("--timelines", flags->timelines,
                      "write predicted and measured timelines to this JSON file");
  command->footer(
      "Examples:\n"
      "  attnsim validate star --ranks 4 --seq 512 --heads 4 --head-dim 32 --schedule mesh --grid "
      "2x2\n"
      "  mpirun -np 4 attnsim validate star --ranks 4 --seq 512 --heads 4 --schedule ring "
      "--transport mpi\n"
      "  torchrun --no-python --nproc-per-node 2 attnsim validate dgx-h100 --ranks 2 --seq 16K "
      "--heads 32 "
      "--schedule ring --transport nccl --kernel cuda");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
