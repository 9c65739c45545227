#include <fmt/format.h>

#include "cli/commands.hpp"
#include "model/error.hpp"

namespace attnsim::cli {

void add_left_out(CLI::App& app, const char* name) {
  auto* command = app.add_subcommand(name);
  command->group("");  // not listed
  command->set_help_flag();
  command->allow_extras();
  command->callback([name] {
    throw input_error(fmt::format(
        "{}: not in this build; configure with -DATTNSIM_VALIDATE=ON and build again", name));
  });
}

}  // namespace attnsim::cli
