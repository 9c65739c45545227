#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <sstream>

#include "ask/crossing.hpp"
#include "ask/dynamic_groups.hpp"
#include "ask/explain.hpp"
#include "ask/frameworks.hpp"
#include "ask/layer_plans.hpp"
#include "ask/lengths.hpp"
#include "ask/search.hpp"
#include "ask/step_plan.hpp"
#include "ask/what_if.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/write_file.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/spelling.hpp"
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
  std::string top = "20", emit, what_if, report, lengths, rank_tokens;
  std::string scope = "attention", dtype;
  ask::step_question step;  ///< its own fields; those that the question has too are there
  bool explain = false, each_layer = false, dynamic = false, search = false;
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

std::string framework_names() {
  std::string names;
  const auto all = frameworks();
  for (const auto& f : all) {
    const bool last = &f == &all.back();
    names += fmt::format("{}{}", names.empty() ? "" : last ? " or " : ", ", f.name);
  }
  return names;
}

/// What is asked for and would not be printed.
void refuse_unprinted(const plan_flags& flags, output_format format) {
  const auto several = "expected without --what-if, which ranks several problems";
  if (!flags.what_if.empty() && !flags.emit.empty())
    throw input_error("--emit", flags.emit, several);
  if (flags.each_layer &&
      !(flags.what_if.empty() && flags.emit.empty() && flags.report.empty() && !flags.explain))
    throw input_error("--each-layer: expected without --what-if, --emit, --report and --explain");
  if (!flags.explain) return;
  const auto refuse = [](const std::string& why) { throw input_error("--explain: " + why); };
  if (!flags.what_if.empty()) refuse(several);
  if (!flags.emit.empty()) refuse("expected without --emit, which prints settings alone");
  if (format != output_format::table) refuse("expected with --format table");
}

/// The step's question: the fields that both have, and its own.
ask::step_question step_of(const plan_flags& flags) {
  for (const auto& f : ask::fields()) {
    const auto text = f.write(flags.question);
    if (!text.empty() && ask::find_step_field(f.name) == nullptr)
      throw input_error("--" + std::string(f.name), text, "expected without --scope step");
  }
  const auto refuse = [](const char* flag, const std::string& text) {
    if (!text.empty()) throw input_error(flag, text, "expected without --scope step");
  };
  refuse("--what-if", flags.what_if);
  refuse("--each-layer", flags.each_layer ? "true" : "");
  refuse("--dynamic", flags.dynamic ? "true" : "");
  refuse("--search", flags.search ? "true" : "");
  if (!flags.question.sequence) throw input_error("--seq is required");
  auto q = flags.step;
  q.base = flags.question;
  q.base.model.clear();
  q.base.tensor_parallel = {};
  q.model = flags.question.model;
  q.tensor = flags.question.tensor_parallel;
  if (!flags.dtype.empty()) set(q, "dtype", flags.dtype);
  return q;
}

void plan_step(const plan_flags& flags, output_format format) {
  ask::step_plan_request request{.asked = step_of(flags),
                                 .schedules = parse_schedules(flags.schedules)};
  const auto top = static_cast<std::size_t>(parse_count("--top", flags.top));
  check_files({{"--report", flags.report}}, files_of(flags.question));
  const auto c = ask::cluster_of(request.asked.base);
  progress bar("steps", flags.output.quiet);
  auto result = ask::plan(request, c, [&](auto done, auto wanted) { bar.show(done, wanted); });
  bar.end();
  if (result.candidates.size() > top) result.candidates.resize(top);
  if (!flags.report.empty())
    write_file("--report", flags.report, report::page_of(c, result).html());
  if (!flags.emit.empty()) {
    const auto settings = ask::settings_of_best(flags.emit, result);
    return fmt::print("{}", report::to_text(settings, flags.emit, result));
  }
  print(result, format);
  if (format == output_format::table && !flags.output.quiet)
    fmt::print(stderr, "{} steps, {} estimated, {} simulated\n", result.considered,
               result.estimated, result.simulated);
}

/// How much better than the best a strategy could be that was not simulated; nothing where all were.
std::string what_others_take(const plan_result& result) {
  const auto least = result.others_at_least;
  if (!std::isfinite(least.value()) || result.candidates.empty()) return "";
  const auto best = result.candidates.front().time;
  if (least >= best) return "no strategy that was not simulated can be better\n";
  return fmt::format(
      "no strategy that was not simulated can take less than {}, {} below the best\n",
      to_string(least), percent(1 - least / best));
}

void run_each_layer(const plan_flags& flags, const cluster& c, output_format format) {
  progress bar("steps", flags.output.quiet);
  const auto plans = ask::plan_each_kind(flags.question, c, parse_schedules(flags.schedules),
                                         [&](auto done, auto wanted) { bar.show(done, wanted); });
  bar.end();
  print(plans, format);
}

void run_dynamic(const plan_flags& flags, output_format format) {
  if (flags.lengths.empty()) throw input_error("--lengths is required with --dynamic");
  if (flags.rank_tokens.empty()) throw input_error("--rank-tokens is required with --dynamic");
  auto question = flags.question;
  const auto schedules = parse_schedules(flags.schedules);
  if (schedules.size() > 1)
    throw input_error("--schedules", *flags.schedules, "expected one schedule with --dynamic");
  if (!schedules.empty()) question.schedule = schedules.front();
  const auto batch =
      ask::group_documents(question, ask::cluster_of(question), ask::read_lengths(flags.lengths),
                           parse_count("--rank-tokens", flags.rank_tokens));
  if (flags.emit.empty()) return print(batch, format);
  if (flags.emit != "megatron")
    throw input_error("--emit", flags.emit, "expected megatron with --dynamic");
  fmt::print("{}", ask::megatron_settings(batch));
}

/// Of one sequence, or of the lengths of a batch.
void refuse_mixed(const plan_flags& flags) {
  const bool of_batch = !flags.lengths.empty() || !flags.rank_tokens.empty();
  if (of_batch && !flags.dynamic)
    throw input_error("--lengths and --rank-tokens: expected with --dynamic");
  if (!flags.dynamic && !flags.question.sequence) throw input_error("--seq is required");
  if (!flags.dynamic) return;
  const auto refuse = [](const char* flag) {
    throw input_error(fmt::format("{}: expected without --dynamic", flag));
  };
  if (flags.question.sequence) refuse("--seq");
  if (!flags.question.documents.empty()) refuse("--documents");
  if (!flags.what_if.empty()) refuse("--what-if");
  if (flags.explain) refuse("--explain");
  if (flags.each_layer) refuse("--each-layer");
  if (flags.search) refuse("--search");
  if (!flags.report.empty()) refuse("--report");
}

/// What a search finds comes first where it is faster.
void add_found(const cluster& c, const plan_request& request, const plan_flags& flags,
               plan_result& result) {
  progress bar("schedules", flags.output.quiet);
  auto found = search_schedules(c, {.planned = request},
                                [&](auto done, auto wanted) { bar.show(done, wanted); });
  bar.end();
  if (found.found.time < result.candidates.front().time)
    result.candidates.insert(result.candidates.begin(), std::move(found.found));
}

void plan_attention(const plan_flags& flags, output_format format) {
  refuse_mixed(flags);
  refuse_unprinted(flags, format);
  if (flags.dynamic) return run_dynamic(flags, format);
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
  if (flags.each_layer) return run_each_layer(flags, c, format);
  const auto request = ask::plan_of(flags.question, ask::ranks_of(flags.question, c),
                                    parse_schedules(flags.schedules));
  progress bar("steps", flags.output.quiet);
  auto result = plan(c, request, [&](auto done, auto wanted) { bar.show(done, wanted); });
  bar.end();
  std::optional<ask::pass_crossing> passing;
  if (request.problem.prefix > 0 && ask::passes_any(result.candidates))
    passing = ask::over_new_tokens(c, result.candidates);
  if (flags.search) add_found(c, request, flags, result);
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
    fmt::print(stderr, "{}", what_others_take(result));
  }
}

void run(plan_flags& flags) {
  const auto format = parse_format(flags.output.format);
  if (flags.scope == "step") return plan_step(flags, format);
  if (flags.scope != "attention")
    throw input_error("--scope", flags.scope, expected_one_of(flags.scope, {"attention", "step"}));
  for (const auto& f : ask::step_fields()) {
    const auto text = f.write(flags.step);
    if (!text.empty())
      throw input_error("--" + std::string(f.name), text, "expected with --scope step");
  }
  if (!flags.dtype.empty()) set(flags.question, "dtype", flags.dtype);
  plan_attention(flags, format);
}

}  // namespace

void add_plan(CLI::App& app) {
  auto flags = std::make_shared<plan_flags>();
  auto* command =
      app.add_subcommand("plan", "the best schedules, grids, token layouts and placements, ranked");
  add_cluster(*command, flags->question);
  add_fields(*command, flags->question, ask::field_group::attention, {"dtype"});
  command
      ->add_option("--dtype", flags->dtype,
                   "bf16, fp16, fp32 or fp8; with --scope step bf16 or fp8-linear")
      ->default_str("bf16");
  add_fields(*command, flags->question, ask::field_group::strategy,
             {"schedule", "kv-order", "levels", "parts", "shares", "schedule-file"});
  command
      ->add_option(
          "--scope", flags->scope,
          "attention, or step: degrees of parallelism, micro-batch, recomputation, sharding "
          "and attention's schedule of a model's training step or prefill, what is not given")
      ->capture_default_str();
  for (const auto& f : ask::step_fields()) {
    if (f.group == ask::field_group::step && ask::find_field(f.name) == nullptr)
      add_field(*command, flags->step, f);
  }
  flags->output.add_to(*command);
  command->add_option("--schedules", flags->schedules, "only these, separated by commas");
  command->add_flag("--search", flags->search,
                    "also search for a schedule that beats them (attnsim search)");
  command->add_option("--top", flags->top, "how many to print")->capture_default_str();
  command->add_flag(
      "--explain", flags->explain,
      "also what bounds each candidate, what it lacks to be first, from which length or bandwidth "
      "on it computes nearly all the time, launch order, which framework and --cp-comm-type can "
      "do it, what was rejected");
  command->add_flag("--each-layer", flags->each_layer,
                    "of a model with windows in some layers only: the best for each kind, and the "
                    "time of all layers");
  command->add_option(
      "--emit", flags->emit,
      "settings for " + framework_names() + "; of a step, for megatron or torchtitan");
  command->add_flag(
      "--dynamic", flags->dynamic,
      "for a batch of documents: context-parallel groups of several sizes against one "
      "size (Megatron's dynamic context parallelism); with --lengths, --rank-tokens");
  command->add_option("--lengths", flags->lengths,
                      "lengths of the batch's documents: a file with one a line, or "
                      "lognormal:mean=N,sigma=X,max=N,count=N");
  command->add_option("--rank-tokens", flags->rank_tokens,
                      "the most tokens that a rank has at once");
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
      "  attnsim plan dgx-h100 --nodes 1 --seq 128K --model gpt-oss-120b --each-layer\n"
      "  attnsim plan dgx-h100 --nodes 2 --model llama3-8b --dynamic --rank-tokens 16K "
      "--lengths lognormal:mean=8K,sigma=1.1,max=128K,count=256\n"
      "  attnsim plan star --seq 256K --what-if nics.bandwidth='50 Gb/s..800 Gb/s'\n"
      "  attnsim plan dgx-h100 --nodes 64 --scope step --model llama3-70b --seq 1M --global-batch "
      "4");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
