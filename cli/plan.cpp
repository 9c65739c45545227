#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>

#include "ask/frameworks.hpp"
#include "ask/planner.hpp"
#include "ask/what_if.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/write_file.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "report/crossovers.hpp"
#include "report/pages.hpp"
#include "sim/parallel.hpp"

namespace attnsim::cli {
namespace {

using ask::what_if_answer;

struct plan_flags {
  ask::question question;
  output_flags output;
  std::string schedules, top = "20", emit, what_if, report;
  bool explain = false;
};

std::vector<std::string> parse_schedules(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');)
    names.emplace_back(find_algorithm(name).name);
  return names;
}

nlohmann::ordered_json to_json(const plan_result& result) {
  nlohmann::ordered_json all{{"schema", "attnsim.plan.1"},
                             {"candidates", nlohmann::ordered_json::array()}};
  for (const auto& p : result.candidates) all["candidates"].push_back(cli::to_json(p));
  return all;
}

std::string to_csv(const plan_result& result) {
  return cli::to_csv(result.candidates);
}

std::string to_table(const plan_result& result) {
  return cli::to_table(result.candidates);
}

std::string factor(double f) {
  return f == 0 ? "no" : fmt::format("{:.3g}x", f);
}

/// "25.1 GB/s": where a candidate becomes compute-bound; "-" also where the cluster file has no such key.
std::string bandwidth_from(const ask::question& q, const std::string& key, const prediction& p) {
  const auto at = [&](bandwidth rate) {
    auto there = q;
    ask::set_key(there, key, fmt::format("{} GB/s", rate.value() / 1e9));
    return ask::cluster_of(there);
  };
  try {
    const auto from = compute_bound_above(at, p);
    return from == bandwidth() ? "-" : to_string(from);
  } catch (const input_error&) {
    return "-";
  }
}

/// What bounds every candidate, what it lacks to be first, and from where on it computes nearly all the time.
std::string shortfalls(const cluster& c, const ask::question& q,
                       const std::vector<prediction>& ranked) {
  const bool one_node = c.devices_per_node >= ranked[0].ranks;
  const std::string key = one_node ? "node.bandwidth" : "nics.bandwidth";
  text_table table({"#", "bound by", "kernels at", "behind", "if network faster by",
                    "or kernels by", "compute-bound from", "or from " + key});
  std::vector<std::vector<std::string>> rows(ranked.size());
  std::vector<std::size_t> places(ranked.size());
  std::iota(places.begin(), places.end(), 0);
  parallel_for_each(places, [&](std::size_t i) {
    const auto& p = ranked[i];
    const auto s = to_catch_up(p, ranked[0]);
    const auto from = compute_bound_from(c, p);
    rows[i] = {fmt::format("{}", i + 1),
               p.bottleneck.kind,
               percent(p.passes.back().kernels.share),
               to_string(s.behind),
               factor(s.network),
               factor(s.kernels),
               from == 0 ? "-" : fmt::format("{} tokens", from),
               bandwidth_from(q, key, p)};
  });
  for (const auto& row : rows) table.add(row);
  return table.str();
}

/// One row a schedule and reason, with its grids.
std::string rejections(const std::vector<rejection>& list) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> grids;
  for (const auto& r : list) grids[{r.candidate.schedule, r.reason}].insert(grid_of(r.candidate));
  text_table table({"rejected", "reason", "grids"});
  for (const auto& [what, of] : grids)
    table.add({what.first, what.second, fmt::format("{}", fmt::join(of, ", "))});
  return table.str();
}

/// Which framework can do which of the candidates.
std::string feasibility(const plan_request& request, const std::vector<prediction>& ranked) {
  text_table table({"framework", "best #", "of #1 it says"});
  for (const auto& f : frameworks()) {
    const auto able = std::find_if(ranked.begin(), ranked.end(), [&](const prediction& p) {
      return f.refusal(p.chosen, request.problem, request.pass).empty();
    });
    const auto reason = f.refusal(ranked[0].chosen, request.problem, request.pass);
    const auto place = able - ranked.begin() + 1;
    table.add({std::string(f.name), able == ranked.end() ? "-" : fmt::format("{}", place),
               reason.empty() ? "can do" : reason});
  }
  return table.str();
}

/// What each --cp-comm-type of Megatron-LM can do, and its best candidate here.
std::string comm_types(const plan_request& request, const std::vector<prediction>& ranked) {
  const auto& megatron = find_framework("megatron");
  text_table table({"--cp-comm-type", "schedule", "mask", "window", "sink", "best #"});
  const auto yes = [](bool can) { return can ? "yes" : "no"; };
  for (const auto& type : cp_comm_types()) {
    const auto able = std::find_if(ranked.begin(), ranked.end(), [&](const prediction& p) {
      return megatron.refusal(p.chosen, request.problem, request.pass).empty() &&
             cp_comm_type_of(p.chosen).name == type.name;
    });
    table.add({std::string(type.name), std::string(type.schedule), "full, causal", yes(type.window),
               yes(type.sink),
               able == ranked.end() ? "-" : fmt::format("{}", able - ranked.begin() + 1)});
  }
  return table.str();
}

std::string advice(const cluster& c, const prediction& best) {
  const auto late = launched_late(c, best);
  const bool one_node = c.devices_per_node >= best.ranks;
  const auto kind = one_node ? link_kind::nvlink : link_kind::network;
  return fmt::format(
      "launch order: transfers before the kernels that hide them; the other way round #1 takes {} "
      "({:+.1f} %)\nchannels: transfers {} hold {} of {} multiprocessors\n",
      to_string(late.time), 100 * (late.time / best.time - 1),
      one_node ? "inside a node" : "between nodes", c.device.transport(kind).channels,
      c.device.multiprocessors);
}

void explain(const cluster& c, const ask::question& q, const plan_request& request,
             const plan_result& result) {
  fmt::print("\n{}\n{}\n{}\n{}\n{}", shortfalls(c, q, result.candidates),
             advice(c, result.candidates[0]), feasibility(request, result.candidates),
             comm_types(request, result.candidates), rejections(result.rejected));
  for (const auto& p : result.on_fewer) {
    fmt::print("{}: {}\n",
               p.ranks == 1 ? "one rank" : fmt::format("{} ranks, {}", p.ranks, p.chosen.schedule),
               to_string(p.time));
  }
}

/// Settings of the best candidate that the framework can do; why not those before it.
void emit(const std::string& name, const plan_request& request,
          const std::vector<prediction>& ranked) {
  const auto& f = find_framework(name);
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const auto& s = ranked[i].chosen;
    const auto reason = f.refusal(s, request.problem, request.pass);
    if (reason.empty()) {
      fmt::print("# {}: #{} of the plan, {} {}, {}\n{}", name, i + 1, s.schedule, grid_of(s),
                 to_string(ranked[i].time), f.settings(s, request.problem));
      return;
    }
    fmt::print("# not #{}, {} {}: {} {}\n", i + 1, s.schedule, grid_of(s), name, reason);
  }
  throw infeasible(
      asked("emit"), name,
      fmt::format("can do none of the {} best; try --schedules or --top", ranked.size()));
}

std::vector<std::string> lines_of_changes(const what_if_answer& w) {
  std::vector<std::string> lines;
  for (const auto& [at, from, to] : w.changes()) {
    lines.push_back(fmt::format("between {} and {} the best changes from {} to {}",
                                w.varied.values[at - 1], w.varied.values[at], from, to));
  }
  return lines;
}

std::string to_table(const what_if_answer& w) {
  std::vector<std::string> header{w.varied.key, "best", "grid", "bound by"};
  for (const auto& [name, times] : w.schedules) header.push_back(name);
  text_table table(header);
  for (std::size_t i = 0; i < w.best.size(); ++i) {
    const auto& best = w.best[i];
    std::vector<std::string> row{w.varied.values[i], best.chosen.schedule, grid_of(best.chosen),
                                 best.bottleneck.kind};
    for (const auto& [name, times] : w.schedules)
      row.push_back(times[i] > seconds{} ? to_string(times[i]) : "-");
    table.add(row);
  }
  auto text = table.str();
  for (const auto& line : lines_of_changes(w)) text += line + "\n";
  return text;
}

nlohmann::ordered_json to_json(const what_if_answer& w) {
  auto values = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < w.best.size(); ++i) {
    auto times = nlohmann::ordered_json::object();
    for (const auto& [name, of] : w.schedules) {
      if (of[i] > seconds{}) times[name] = of[i].value();
    }
    values.push_back({{"value", w.varied.values[i]},
                      {"best", cli::to_json(w.best[i])},
                      {"time_s", std::move(times)}});
  }
  return {{"schema", "attnsim.what-if.1"}, {"key", w.varied.key}, {"values", values}};
}

std::string to_csv(const what_if_answer& w) {
  auto text = fmt::format("{},schedule,time_s\n", w.varied.key);
  for (std::size_t i = 0; i < w.varied.values.size(); ++i) {
    for (const auto& [name, times] : w.schedules) {
      if (times[i] > seconds{})
        text += fmt::format("{},{},{}\n", w.varied.values[i], name, times[i].value());
    }
  }
  return text;
}

report::crossing crossing_of(const what_if_answer& w) {
  report::crossing times{.of = w.varied.key, .values = w.varied.values};
  for (const auto& [name, of_schedule] : w.schedules) times.times.push_back({name, of_schedule});
  return times;
}

report::page page_of(const what_if_answer& w) {
  const auto where = lines_of_changes(w);
  return {.title = fmt::format("What if: {} on {}, {} ranks", w.varied.key, w.best[0].cluster,
                               w.best[0].ranks),
          .answer = where.empty()
                        ? fmt::format("{} is the best throughout", report::name_of(w.best[0]))
                        : fmt::format("{}", fmt::join(where, "; ")),
          .facts = {{"problem", report::problem_of(w.best[0].problem)}},
          .sections = {report::crossovers(crossing_of(w), "The best candidate of every schedule.")},
          .result = to_json(w)};
}

template <typename Result>
void print(const Result& result, output_format format) {
  switch (format) {
    case output_format::json:
      return fmt::print("{}\n", to_json(result).dump(2));
    case output_format::csv:
      return fmt::print("{}", to_csv(result));
    case output_format::table:
      return print_table(to_table(result));
  }
}

void run(const plan_flags& flags) {
  const auto format = parse_format(flags.output.format);
  const auto top = static_cast<std::size_t>(parse_count("--top", flags.top));
  if (!flags.emit.empty()) find_framework(flags.emit);
  check_files({{"--report", flags.report}}, files_of(flags.question));
  if (!flags.what_if.empty()) {
    const auto w = ask::answer(flags.question, ask::parse_what_if(flags.what_if),
                               parse_schedules(flags.schedules));
    if (!flags.report.empty()) write_file("--report", flags.report, page_of(w).html());
    return print(w, format);
  }
  const auto c = ask::cluster_of(flags.question);
  const auto request = ask::plan_of(flags.question, ask::ranks_of(flags.question, c),
                                    parse_schedules(flags.schedules));
  progress bar("steps", flags.output.quiet);
  auto result = plan(c, request, [&](auto done, auto wanted) { bar.show(done, wanted); });
  bar.end();
  if (result.candidates.size() > top) result.candidates.resize(top);
  if (!flags.report.empty()) {
    write_file("--report", flags.report,
               report::page_of(c, result.candidates, to_json(result)).html());
  }
  if (!flags.emit.empty()) return emit(flags.emit, request, result.candidates);
  print(result, format);
  if (format != output_format::table) return;
  if (flags.explain) explain(c, flags.question, request, result);
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
                      "settings for megatron, trtllm, usp, xdit, ring-flash-attention, torchtitan "
                      "or magiattention");
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
