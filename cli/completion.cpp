#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/flags.hpp"

namespace attnsim::cli {
namespace {

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    words += " " + sub->get_name();
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) words += " --" + name;
  }
  return words;
}

}  // namespace

void add_completion(CLI::App& app) {
  auto* command =
      app.add_subcommand("completion", "a script for bash: source <(attnsim completion)");
  add_quiet(*command);
  command->callback([&app] {
    fmt::print("_attnsim() {{\n  local words=\"{}\"\n  case \"${{COMP_WORDS[1]}}\" in\n",
               words_of(app));
    for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
      fmt::print("    {}) words=\"{}\";;\n", sub->get_name(), words_of(*sub));
    }
    fmt::print(
        "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n}}\n");
    fmt::print("complete -o default -F _attnsim attnsim\n");
  });
}

}  // namespace attnsim::cli
