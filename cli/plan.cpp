#include <fmt/format.h>

#include <memory>
#include <optional>
#include <sstream>

#include "ask/crossing.hpp"
#include "ask/explain.hpp"
#include "ask/frameworks.hpp"
#include "ask/what_if.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/write_file.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "report/crossovers.hpp"
#include "report/explanation.hpp"
#include "report/pages.hpp"
#include "report/what_if_views.hpp"

namespace attnsim::cli {
namespace {

struct plan_flags {
  ask::question question;
  output_flags output;
  std::optional<std::string> schedules;
  std::string top = "20", emit, what_if, report;
  bool explain = false;
};

std::vector<std::string> parse_schedules(const std::optional<std::string>& list) {
  if (list && list->empty())
    throw input_error("--schedules", *list, "expected names, as attnsim schedules lists them");
  std::vector<std::string> names;
  std::istringstream stream(list.value_or(""));
  for (std::string name; std::getline(stream, name, ',');)
    names.emplace_back(find_algorithm(name).name);
  return names;
}

/// What is asked for and would not be printed.
void refuse_unprinted(const plan_flags& flags, output_format format) {
  const auto several = "expected without --what-if, which ranks several problems";
  if (!flags.what_if.empty() && !flags.emit.empty())
    throw input_error("--emit", flags.emit, several);
  if (!flags.explain) return;
  const auto refuse = [](const std::string& why) { throw input_error("--explain: " + why); };
  if (!flags.what_if.empty()) refuse(several);
  if (!flags.emit.empty()) refuse("expected without --emit, which prints settings alone");
  if (format != output_format::table) refuse("expected with --format table");
}

void run(const plan_flags& flags) {
  const auto format = parse_format(flags.output.format);
  refuse_unprinted(flags, format);
  const auto top = static_cast<std::size_t>(parse_count("--top", flags.top));
  if (!flags.emit.empty()) find_framework(flags.emit);
  check_files({{"--report", flags.report}}, files_of(flags.question));
  if (!flags.what_if.empty()) {
    const auto w = ask::answer(flags.question, ask::parse_what_if(flags.what_if),
                               parse_schedules(flags.schedules));
    if (!flags.report.empty()) write_file("--report", flags.report, report::page_of(w).html());
    return print(w, format);
  }
  const auto c = ask::cluster_of(flags.question);
  const auto request = ask::plan_of(flags.question, ask::ranks_of(flags.question, c),
                                    parse_schedules(flags.schedules));
  progress bar("steps", flags.output.quiet);
  auto result = plan(c, request, [&](auto done, auto wanted) { bar.show(done, wanted); });
  bar.end();
  std::optional<ask::pass_crossing> passing;
  if (request.problem.prefix > 0 && ask::passes_any(result.candidates))
    passing = ask::over_new_tokens(c, result.candidates);
  if (result.candidates.size() > top) result.candidates.resize(top);
  if (!flags.report.empty())
    write_file("--report", flags.report, report::page_of(c, result).html());
  if (!flags.emit.empty()) {
    const auto settings = settings_of_best(find_framework(flags.emit), result);
    return fmt::print("{}", report::to_text(settings, flags.emit, result));
  }
  print(result, format);
  if (format != output_format::table) return;
  if (passing) fmt::print("\n{}", report::to_text(*passing));
  if (flags.explain)
    fmt::print("\n{}", report::to_text(ask::explain(flags.question, c, result), result, c));
  if (!flags.output.quiet) {
    fmt::print(stderr, "{} strategies, {} estimated, {} simulated, {} rejected{}\n",
               result.considered, result.estimated, result.simulated, result.rejected.size(),
               flags.explain ? "" : " (--explain lists them)");
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  auto flags = std::make_shared<plan_flags>();
  auto* command =
      app.add_subcommand("plan", "the best schedules, grids, token layouts and placements, ranked");
  add_cluster(*command, flags->question);
  add_fields(*command, flags->question, ask::field_group::attention);
  command->get_option("--seq")->required();
  add_fields(*command, flags->question, ask::field_group::strategy, {"schedule", "kv-order"});
  flags->output.add_to(*command);
  command->add_option("--schedules", flags->schedules, "only these, separated by commas");
  command->add_option("--top", flags->top, "how many to print")->capture_default_str();
  command->add_flag(
      "--explain", flags->explain,
      "also what bounds each candidate, what it lacks to be first, from which length or bandwidth "
      "on it computes nearly all the time, launch order, which framework and --cp-comm-type can "
      "do it, what was rejected");
  command->add_option("--emit", flags->emit,
                      "settings for megatron, trtllm, usp, xdit, ring-flash-attention, torchtitan, "
                      "magiattention, vllm or sglang");
  command->add_option(
      "--what-if", flags->what_if,
      "key=from..to: plan for each value, doubling; a workload flag or a key of the "
      "cluster file");
  add_report(*command, flags->report);
  command->footer(
      "Examples:\n"
      "  attnsim plan nd-h100-v5 --nodes 8 --seq 1M --heads 64 --kv-heads 8\n"
      "  attnsim plan nc-h100-v5 --nodes 64 --seq 128K --model gpt3-13b --schedules "
      "ring,attention2d --top 5\n"
      "  attnsim plan nd-h100-v5 --nodes 8 --seq 1M --model llama3-8b --emit megatron\n"
      "  attnsim plan star --seq 256K --what-if nics.bandwidth='50 Gb/s..800 Gb/s'");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
