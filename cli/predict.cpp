#include <fmt/format.h>

#include <memory>

#include "ask/predicted_run.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/trace.hpp"
#include "cli/write_file.hpp"
#include "model/error.hpp"
#include "report/pages.hpp"

namespace attnsim::cli {
namespace {

struct predict_flags {
  ask::question question;
  output_flags output;
  std::string trace, report;
};

std::string trace_of(const cluster& c, ask::predicted_run& run) {
  trace t;
  for (const auto& pass : run.passes()) {
    t.add("predicted", pass.program, pass.times, pass.start);
    t.add_links(c.network, pass.times, pass.start);
  }
  return t.str();
}

ask::recording recording_for(const predict_flags& flags) {
  return !flags.trace.empty()    ? ask::recording::loads
         : !flags.report.empty() ? ask::recording::slowest
                                 : ask::recording::totals;
}

void run(const predict_flags& flags) {
  const auto format = parse_format(flags.output.format);
  check_files({{"--trace", flags.trace}, {"--report", flags.report}}, files_of(flags.question));
  const auto c = ask::cluster_of(flags.question);
  progress bar("operations", flags.output.quiet);
  ask::predicted_run asked(flags.question, c, recording_for(flags),
                           [&](auto done, auto wanted) { bar.show(done, wanted); });
  bar.end();
  const auto& p = asked.prediction();
  if (!flags.trace.empty()) write_file("--trace", flags.trace, trace_of(c, asked));
  if (!flags.report.empty()) write_file("--report", flags.report, report::page_of(c, asked).html());
  print(p, format);
  if (!p.feasible) {
    throw infeasible(fmt::format("{} {}x{} {}; try more ranks, a smaller batch or attnsim plan",
                                 p.chosen.schedule, p.chosen.rows, p.chosen.cols, p.lacks));
  }
}

}  // namespace

void add_predict(CLI::App& app) {
  auto flags = std::make_shared<predict_flags>();
  auto* command = app.add_subcommand("predict", "time, traffic and memory of one strategy");
  add_prediction(*command, flags->question);
  flags->output.add_to(*command);
  command->add_option("--trace", flags->trace,
                      "write the simulated timeline to this file, for ui.perfetto.dev");
  add_report(*command, flags->report);
  command->footer(
      "Examples:\n"
      "  attnsim predict nd-h100-v5 --seq 1M --model llama3-70b --schedule ring\n"
      "  attnsim predict nd-a100-v4 --nodes 8 --seq 128K --heads 40 --schedule attention2d --grid "
      "8x8\n"
      "  attnsim predict cluster.yaml --seq 256K --heads 32 --kv-heads 8 --schedule mesh --grid "
      "16x4 --format json");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
