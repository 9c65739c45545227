#include "cli/mistyped.hpp"

#include <fmt/format.h>

#include "model/spelling.hpp"

namespace attnsim::cli {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// "attnsim topology show".
std::string path_of(const CLI::App& app) {
  const auto* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

std::string unknown(const CLI::App& app, const std::string& argument) {
  if (argument.starts_with('-')) {
    const auto flag = argument.substr(0, argument.find('='));
    const auto bare = flag.find_first_not_of('-');
    const auto meant = bare == std::string::npos ? "" : "--" + flag.substr(bare);
    const auto near = did_you_mean(meant, flags_of(app));
    return fmt::format("{}: unknown flag of {}{}", flag, path_of(app),
                       near.empty() ? "; see its --help" : near);
  }
  const auto commands = commands_of(app);
  if (commands.empty())
    return fmt::format("'{}': expected no further argument of {}", argument, path_of(app));
  return fmt::format("{}: unknown command of {}; {}", argument, path_of(app),
                     expected_one_of(argument, commands));
}

}  // namespace

std::string mistake_in(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  while (true) {
    if (const auto left = at->remaining(); !left.empty()) return unknown(*at, left.front());
    const auto chosen = at->get_subcommands();
    if (chosen.empty()) break;
    at = chosen.front();
  }
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace attnsim::cli
