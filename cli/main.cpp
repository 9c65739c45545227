// The program attnsim.
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/exit.hpp"
#include "cli/flags.hpp"
#include "model/error.hpp"

namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

int report(const char* what, int code) {
  fmt::print(stderr, "attnsim: {}\n", what);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "attnsim predicts distributed attention on a described cluster, and chooses how to run it.",
      "attnsim");
  app.set_version_flag("--version", "attnsim " ATTNSIM_VERSION);
  app.require_subcommand(1);
  attnsim::cli::add_predict(app);
  attnsim::cli::add_plan(app);
  attnsim::cli::add_sweep(app);
  attnsim::cli::add_calibrate(app);
  attnsim::cli::add_compare(app);
#ifdef ATTNSIM_HAS_EXECUTION
  attnsim::cli::add_measure(app);
  attnsim::cli::add_validate(app);
#endif
  attnsim::cli::add_reproduce(app);
  attnsim::cli::add_topology(app);
  attnsim::cli::add_schedules(app);
  attnsim::cli::add_completion(app);
  attnsim::cli::add_reference(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    return report(first_line(e.what()).c_str(), 2);
  } catch (const attnsim::input_error& e) {
    return report(attnsim::cli::worded(e).c_str(), 2);
  } catch (const attnsim::infeasible& e) {
    return report(attnsim::cli::worded(e).c_str(), 3);
  } catch (const std::exception& e) {
    return report(e.what(), 1);
  }
}
