#include "model/schedule/algorithms/schedules.hpp"

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"

namespace attnsim::cli {

void add_schedules(CLI::App& app) {
  auto* command = app.add_subcommand("schedules", "the algorithms that can be predicted");
  add_quiet(*command);
  command->callback([] {
    text_table table({"schedule", "what it does", "source"});
    for (const auto& a : algorithms()) {
      table.add({std::string(a.name), std::string(a.summary), std::string(a.source)});
    }
    fmt::print("{}", table.str());
  });
}

}  // namespace attnsim::cli
