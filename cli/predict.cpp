#include "ask/predict.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/trace.hpp"
#include "cli/write_file.hpp"
#include "model/error.hpp"
#include "report/pages.hpp"
#include "sim/simulator.hpp"

namespace attnsim::cli {
namespace {

struct predict_flags {
  ask::question question;
  output_flags output;
  std::string trace, report;
};

/// The passes one after the other.
std::string trace_of(const cluster& c, const prediction& p) {
  trace t;
  seconds offset;
  for (const auto& pass : p.passes) {
    const placed_schedule i(c, p.problem, p.chosen, pass.pass);
    const auto times = simulate(i, {.record = true, .record_links = true});
    t.add("predicted", i.program(), times, offset);
    t.add_links(c.network, times, offset);
    offset += times.duration();
  }
  return t.str();
}

void run(const predict_flags& flags) {
  const auto format = parse_format(flags.output.format);
  check_files({{"--trace", flags.trace}, {"--report", flags.report}}, files_of(flags.question));
  const auto c = ask::cluster_of(flags.question);
  const auto p = ask::predict(flags.question, c);
  if (!flags.trace.empty()) write_file("--trace", flags.trace, trace_of(c, p));
  if (!flags.report.empty()) write_file("--report", flags.report, report::page_of(c, p).html());
  switch (format) {
    case output_format::table:
      print_table(to_table(p));
      break;
    case output_format::json:
      fmt::print("{}\n", to_json(p).dump(2));
      break;
    case output_format::csv:
      fmt::print("{}", to_csv({p}));
      break;
  }
  if (!p.feasible) {
    throw infeasible(fmt::format("{} {}x{} {}; try more ranks, a smaller batch or attnsim plan",
                                 p.chosen.schedule, p.chosen.rows, p.chosen.cols,
                                 p.warnings.front()));
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
