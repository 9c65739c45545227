#include "cli/run_case.hpp"

#include "calibrate/predicted.hpp"
#include "model/error.hpp"

namespace attnsim::cli {

void case_flags::add_to(CLI::App& app) {
  add_fields(app, question, ask::field_group::attention);
  add_fields(app, question, ask::field_group::strategy, {"kernel"});
  app.add_option("--kernel", kernel, "what computes: cpu; with nccl: cuda or cudnn")
      ->capture_default_str();
  app.add_flag("--cuda-graph", graph, "launch each measured run as one CUDA graph (nccl)");
}

cluster case_flags::as_measured(cluster c) const {
  if (kernel != "cpu") c.device.start = graph ? run_start::idle_graph : run_start::idle;
  return c;
}

case_flags read_case(const std::string& where, const std::string& line, case_flags others) {
  auto flags = std::move(others);
  CLI::App app;
  flags.add_to(app);
  try {
    app.parse(line, false);
  } catch (const CLI::ParseError& e) {
    throw input_error(where, line, e.what());
  }
  return flags;
}

measured_run run_of(const case_flags& flags, const cluster& c, int ranks) {
  auto chosen = ask::strategy_of(flags.question, flags.question.mask);
  if (flags.kernel != "cpu") chosen.kernel = profile_kernel(c.device, flags.kernel);
  return {flags.as_measured(c), ask::problem_of(flags.question, layout_unit(chosen.tokens, ranks)),
          chosen, flags.question.pass};
}

prediction predict_case(const std::string& where, const std::string& line, const cluster& c) {
  const auto run = run_of(read_case(where, line), c, c.devices());
  return predict(run.on, run.problem, run.chosen, c.devices(), run.pass);
}

}  // namespace attnsim::cli
