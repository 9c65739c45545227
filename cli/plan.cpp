#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <numeric>
#include <sstream>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "model/schedules/schedules.hpp"
#include "sim/planner.hpp"

namespace attnsim::cli {
namespace {

struct plan_flags {
  cluster_flags cluster;
  workload_flags workload;
  strategy_flags strategy;
  output_flags output;
  std::string schedules, top = "20";
  bool explain = false;
};

std::vector<std::string> parse_schedules(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');)
    names.emplace_back(find_algorithm(name).name);
  return names;
}

/// A line on stderr that grows while a terminal watches.
std::function<void(double)> progress_line(bool quiet) {
  if (quiet || isatty(STDERR_FILENO) == 0) return {};
  return [](double share) {
    fmt::print(stderr, "\r{:3.0f} % planned{}", 100 * share, share >= 1 ? "\r\033[K" : "");
    std::fflush(stderr);
  };
}

plan_request read_request(const plan_flags& flags, int ranks) {
  plan_request request{.ranks = ranks,
                       .pass = flags.workload.read_pass(),
                       .schedules = parse_schedules(flags.schedules)};
  request.fixed = flags.strategy.read(parse_flag("--mask", flags.workload.mask, parse_mask));
  request.fix_tokens = !flags.strategy.tokens.empty();
  request.fix_placement = !flags.strategy.placement.empty();
  request.fix_grid = !flags.strategy.grid.empty();
  const auto unit = request.fix_tokens ? layout_unit(request.fixed.tokens, ranks) : 2 * ranks;
  request.problem = flags.workload.read(unit);
  return request;
}

void print_json(const plan_result& result) {
  nlohmann::ordered_json all{{"schema", "attnsim.plan.1"},
                             {"candidates", nlohmann::ordered_json::array()}};
  for (const auto& p : result.candidates) all["candidates"].push_back(to_json(p));
  fmt::print("{}\n", all.dump(2));
}

void print_rejected(const plan_result& result) {
  text_table table({"rejected", "grid", "tokens", "reason"});
  for (const auto& r : result.rejected) {
    table.add({r.candidate.schedule, fmt::format("{}x{}", r.candidate.rows, r.candidate.cols),
               std::string(name_of(r.candidate.tokens)), r.reason});
  }
  fmt::print("\n{}", table.str());
}

void run(const plan_flags& flags) {
  const auto format = parse_format(flags.output.format);
  const auto top = static_cast<std::size_t>(parse_count("--top", flags.top));
  const auto c = flags.cluster.read();
  const auto request = read_request(flags, flags.cluster.ranks_of(c));
  auto result = plan(c, request, progress_line(flags.output.quiet));
  if (result.candidates.size() > top) result.candidates.resize(top);
  switch (format) {
    case output_format::json:
      return print_json(result);
    case output_format::csv:
      return fmt::print("{}", to_csv(result.candidates));
    case output_format::table:
      break;
  }
  fmt::print("{}", to_table(result.candidates));
  if (flags.explain) print_rejected(result);
  if (!flags.output.quiet) {
    fmt::print(stderr, "{} strategies estimated, {} simulated, {} rejected{}\n", result.considered,
               result.simulated, result.rejected.size(),
               flags.explain ? "" : " (--explain lists them)");
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  auto flags = std::make_shared<plan_flags>();
  auto* command =
      app.add_subcommand("plan", "the best schedules, grids, token layouts and placements, ranked");
  flags->cluster.add_to(*command);
  flags->workload.add_to(*command);
  flags->strategy.add_to(*command, false);
  flags->output.add_to(*command);
  command->add_option("--schedules", flags->schedules, "only these, separated by commas");
  command->add_option("--top", flags->top, "how many to print")->capture_default_str();
  command->add_flag("--explain", flags->explain, "also list what was rejected, and why");
  command->footer(
      "Examples:\n"
      "  attnsim plan nd-h100-v5 --nodes 8 --seq 1M --heads 64 --kv-heads 8\n"
      "  attnsim plan nc-h100-v5 --nodes 64 --seq 128K --model gpt3-13b --schedules "
      "ring,attention2d --top 5");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
