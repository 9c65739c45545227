#include <fmt/format.h>

#include <memory>
#include <sstream>

#include "ask/step_figures.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "model/spelling.hpp"
#include "report/figure_views.hpp"

namespace attnsim::cli {
namespace {

/// On one line of a Markdown table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "<br>";
    } else if (std::string_view("<>|*_").find(c) != std::string_view::npos) {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

/// "--nodes TEXT", "CLUSTER".
std::string name_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true, false);
  return "--" + option.get_lnames().front();
}

void print_options(const CLI::App& app) {
  fmt::print("| flag | meaning | default |\n|---|---|---|\n");
  for (const auto* option : app.get_options()) {
    if (option->get_lnames() == std::vector<std::string>{"help"}) continue;
    fmt::print("| `{}` | {}{} | {} |\n", name_of(*option), cell(option->get_description()),
               option->get_required() ? " (required)" : "", cell(option->get_default_str()));
  }
  fmt::print("\n");
}

void print_command(const CLI::App& app, const std::string& path) {
  fmt::print("## {}\n\n{}\n\n", path, cell(app.get_description()));
  const auto all = [](const CLI::App*) { return true; };
  if (app.get_subcommands(all).empty()) print_options(app);
  if (!app.get_footer().empty()) {
    std::istringstream lines(app.get_footer());
    for (std::string line; std::getline(lines, line);) fmt::print("    {}\n", line);
    fmt::print("\n");
  }
  for (const auto* sub : app.get_subcommands(all))
    print_command(*sub, path + " " + sub->get_name());
}

void print_commands(const CLI::App& app) {
  fmt::print(
      "# Commands\n\nWritten by `attnsim reference`; a test compares. Counts of tokens may end in "
      "K or M (128K, 1M).\n\n");
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) print_command(*sub, "attnsim " + sub->get_name());
  }
}

}  // namespace

std::vector<std::string> reference_names() {
  return {"commands", "man", "figures", "problem", "step"};
}

void add_reference(CLI::App& app) {
  auto what = std::make_shared<std::string>("commands");
  auto* command = app.add_subcommand(
      "reference",
      "all commands and flags, as docs/commands.md or as a manual page, or figures of results");
  command
      ->add_option(
          "WHAT", *what,
          "commands, man, or the keys in docs/files.md: figures of a prediction, problem, or step")
      ->capture_default_str();
  add_quiet(*command);
  command->callback([&app, what] {
    if (*what == "commands") return print_commands(app);
    if (*what == "man") return print_manual(app);
    if (*what == "figures") return fmt::print("{}", report::reference_of_figures<prediction>());
    if (*what == "problem") return fmt::print("{}", report::reference_of_figures<attention>());
    if (*what == "step") return fmt::print("{}", report::reference_of_figures<ask::step_answer>());
    throw input_error("WHAT", *what, expected_one_of(*what, reference_names()));
  });
}

}  // namespace attnsim::cli
