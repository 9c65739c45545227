// The program attnsim.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <sstream>
#include <system_error>

#include "cli/commands.hpp"
#include "cli/exit.hpp"
#include "cli/flags.hpp"
#include "cli/mistyped.hpp"
#include "cli/standard_streams.hpp"
#include "model/error.hpp"
#include "model/printable.hpp"

#ifdef ATTNSIM_HAS_JEMALLOC
/// Predictions of very many devices take a third less time on large pages (jemalloc(3), opt.thp).
extern "C" {
const char* malloc_conf = "thp:always";
}
#endif

namespace {

void add_commands(CLI::App& app) {
  attnsim::cli::add_predict(app);
  attnsim::cli::add_plan(app);
  attnsim::cli::add_search(app);
  attnsim::cli::add_step(app);
  attnsim::cli::add_sweep(app);
  attnsim::cli::add_calibrate(app);
  attnsim::cli::add_compare(app);
#ifdef ATTNSIM_HAS_EXECUTION
  attnsim::cli::add_measure(app);
  attnsim::cli::add_validate(app);
#else
  attnsim::cli::add_left_out(app, "measure");
  attnsim::cli::add_left_out(app, "validate");
#endif
  attnsim::cli::add_reproduce(app);
  attnsim::cli::add_topology(app);
  attnsim::cli::add_schedules(app);
  attnsim::cli::add_completion(app);
  attnsim::cli::add_reference(app);
  attnsim::cli::add_doctor(app);
}

/// Runs the command that is asked for.
void answer(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text);
    fmt::print("{}", text.str());
  }
}

struct ending {
  int code = 0;
  std::string message;
  int system_error = 0;
};

ending run(int argc, char** argv) {
  CLI::App app(
      "attnsim predicts distributed attention on a described cluster, and chooses how to run it.",
      "attnsim");
  app.set_version_flag("--version", "attnsim " ATTNSIM_VERSION);
  app.require_subcommand(1);
  try {
    add_commands(app);
    answer(app, argc, argv);
    return {};
  } catch (const CLI::ParseError& e) {
    return {2, attnsim::cli::mistake_in(app, e)};
  } catch (const attnsim::input_error& e) {
    return {2, attnsim::cli::worded(e)};
  } catch (const attnsim::infeasible& e) {
    return {3, attnsim::cli::worded(e)};
  } catch (const std::system_error& e) {
    return {1, e.what(), e.code().value()};
  } catch (const std::exception& e) {
    return {1, e.what()};
  }
}

}  // namespace

int main(int argc, char** argv) {
  attnsim::cli::take_closed_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the shell's limit is an error like a full disk
  auto end = run(argc, argv);
  const auto lost = attnsim::cli::close_standard_output(end.system_error);
  if (!lost.empty()) end = {1, "standard output: " + lost};
  const auto message = attnsim::printable(end.message);
  if (!message.empty()) std::fputs(fmt::format("attnsim: {}\n", message).c_str(), stderr);
  return end.code;
}
