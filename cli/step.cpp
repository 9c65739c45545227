#include <fmt/format.h>

#include <memory>

#include "ask/step.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/write_file.hpp"
#include "model/error.hpp"

namespace attnsim::cli {
namespace {

struct step_flags {
  ask::step_question question;
  output_flags output;
  std::string report;
};

void run(const step_flags& flags) {
  const auto format = parse_format(flags.output.format);
  auto inputs = files_of(flags.question.base);
  inputs.push_back({"--model", flags.question.model});
  check_files({{"--report", flags.report}}, inputs);
  const auto c = ask::cluster_of(flags.question.base);
  const auto a = ask::answer(flags.question, c);
  if (!flags.report.empty()) write_file("--report", flags.report, report::page_of(c, a).html());
  print(a, format);
  if (a.feasible) return;
  throw infeasible(
      fmt::format("out of memory: {}; try more recomputation, sharding or ranks, or a smaller "
                  "micro-batch",
                  a.lacks));
}

}  // namespace

void add_step(CLI::App& app) {
  auto flags = std::make_shared<step_flags>();
  auto* command =
      app.add_subcommand("step", "a model's training step or prefill: time, where it goes, memory");
  add_cluster_name(*command, flags->question.base.cluster);
  for (const auto& f : ask::step_fields()) add_field(*command, flags->question, f);
  command->get_option("--seq")->required();
  command->get_option("--model")->required();
  flags->output.add_to(*command);
  add_report(*command, flags->report);
  command->footer(
      "Examples:\n"
      "  attnsim step dgx-h100 --nodes 4 --model llama2-7b --seq 256K --tp 4 --cp 8 "
      "--dtype fp8-linear --shard optimizer\n"
      "  attnsim step dgx-h100 --nodes 1 --model llama3-8b --seq 8K --micro-batch 2 --shard "
      "parameters "
      "--recompute selective\n"
      "  attnsim step dgx-h100 --nodes 2 --model llama3-70b --seq 128K --tp 8 --cp 2 --task "
      "prefill "
      "--format json");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
