#include "ask/search.hpp"

#include <fmt/format.h>

#include <memory>

#include "ask/schedule_file.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/write_file.hpp"
#include "model/error.hpp"

namespace attnsim::cli {
namespace {

struct search_flags {
  ask::question question;
  output_flags output;
  std::string seed = "1", evaluations = "2000", log, out;
};

std::string file_of(const search_flags& flags, const search_result& r) {
  return ask::schedule_file_of(
      r.found.chosen,
      {.asked = fmt::format("{} {}", flags.question.cluster, ask::written(flags.question, {})),
       .seed = static_cast<std::int64_t>(r.seed),
       .evaluated = static_cast<std::int64_t>(r.evaluated),
       .time = r.found.time,
       .limit = r.found.limit.time});
}

void run(const search_flags& flags) {
  const auto format = parse_format(flags.output.format);
  if (!flags.question.sequence) throw input_error("--seq is required");
  search_request request{
      .seed = static_cast<std::uint64_t>(parse_count("--seed", flags.seed, 0)),
      .evaluations = static_cast<std::size_t>(parse_count("--evaluations", flags.evaluations)),
      .log = flags.log};
  check_files({{"--out", flags.out}}, files_of(flags.question));
  const auto c = ask::cluster_of(flags.question);
  request.planned = ask::plan_of(flags.question, ask::ranks_of(flags.question, c), {});
  progress bar("schedules", flags.output.quiet);
  const auto result =
      search_schedules(c, request, [&](auto done, auto wanted) { bar.show(done, wanted); });
  bar.end();
  if (!flags.out.empty()) write_file("--out", flags.out, file_of(flags, result));
  print(result, format);
}

}  // namespace

void add_search(CLI::App& app) {
  auto flags = std::make_shared<search_flags>();
  auto* command = app.add_subcommand(
      "search", "a schedule better than all published ones, and how far from the limit");
  add_cluster(*command, flags->question);
  const auto left_out = fields_left_to_search();
  add_fields(*command, flags->question, ask::field_group::attention, left_out);
  add_fields(*command, flags->question, ask::field_group::strategy, left_out);
  flags->output.add_to(*command);
  command->add_option("--seed", flags->seed, "the same seed finds the same schedule")
      ->capture_default_str();
  command->add_option("--evaluations", flags->evaluations, "how many schedules to simulate")
      ->capture_default_str();
  command->add_option("--log", flags->log,
                      "file that keeps every evaluation: a search that was stopped goes on there");
  command->add_option("--out", flags->out,
                      "write the schedule to this file, for --schedule-file of other commands");
  command->footer(
      "Examples:\n"
      "  attnsim search nd-h100-v5 --nodes 2 --seq 256K --heads 32 --evaluations 100 --out "
      "found.yaml\n"
      "  attnsim predict nd-h100-v5 --nodes 2 --seq 256K --heads 32 --schedule-file found.yaml\n"
      "  attnsim search cluster.yaml --ranks 16 --seq 128K --heads 32 --evaluations 100 --log "
      "search.log");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
