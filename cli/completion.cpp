#include <fmt/format.h>

#include <algorithm>

#include "ask/frameworks.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "formats/exports.hpp"
#include "formats/importer.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/spelling.hpp"
#include "reproduce/study.hpp"

namespace attnsim::cli {
namespace {

using names = std::vector<std::string>;

/// Of what is no field of a question: the commands' own flags and arguments.
names known_names(const std::string& option) {
  if (option == "CLUSTER") return shipped_clusters();
  if (option == "schedules") return names_in(algorithms());
  if (option == "emit") return names_in(frameworks());
  if (option == "NAME") return names_in(reproduce::studies());
  if (option == "as") return names_in(formats::known_importers());
  if (option == "to") return names_in(formats::export_formats());
  if (option == "format") return {"table", "json", "csv"};
  if (option == "transport") return {"inprocess", "mpi", "nccl"};
  if (option == "emulate") return {"none", "waits", "both"};
  if (option == "WHAT") return reference_names();
  if (option == "SHELL") return {"bash", "zsh", "fish"};
  return {};
}

names values_of(const CLI::Option& option) {
  const auto name =
      option.get_positional() ? option.get_name(true, false) : option.get_lnames().front();
  const auto* f = ask::find_field(name);
  if (f == nullptr) return known_names(name);
  return f->choices == nullptr ? names() : f->choices();
}

const auto all_of = [](const CLI::App*) { return true; };

/// What may stand where no flag waits for its value.
names arguments_of(const CLI::App& command, bool is_flag) {
  names words;
  for (const auto* sub : command.get_subcommands(all_of)) {
    if (!is_flag && !sub->get_group().empty()) words.push_back(sub->get_name());
  }
  for (const auto* option : command.get_options()) {
    if (is_flag) {
      for (const auto& name : option->get_lnames()) words.push_back("--" + name);
    } else if (option->get_positional()) {
      const auto values = values_of(*option);
      words.insert(words.end(), values.begin(), values.end());
    }
  }
  return words;
}

const CLI::Option* flag_called(const CLI::App& command, const std::string& word) {
  return word.starts_with("--") ? command.get_option_no_throw(word) : nullptr;
}

/// How the last of the words of a command line may go on, each as the whole word; nothing where a file may.
names completions(const CLI::App& program, names words) {
  const auto last = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  std::erase(words, "=");  // bash makes it a word of its own
  const auto* command = &program;
  for (const auto& word : words) {
    for (const auto* sub : command->get_subcommands(all_of)) {
      if (sub->get_name() == word) command = sub;
    }
  }
  const auto* flag = words.empty() ? nullptr : flag_called(*command, words.back());
  const bool wants_value = flag != nullptr && flag->get_expected_max() > 0;
  const auto comma = wants_value ? last.rfind(',') + 1 : 0;  // of a list
  const auto possible =
      wants_value ? values_of(*flag) : arguments_of(*command, last.starts_with('-'));
  names fitting;
  for (const auto& word : possible) {
    if (word.starts_with(last.substr(comma))) fitting.push_back(last.substr(0, comma) + word);
  }
  return fitting;
}

/// Each asks `attnsim complete` and leaves files to the shell.
constexpr const char* bash_script = R"(_attnsim() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _attnsim attnsim
)";
constexpr const char* zsh_script = R"(#compdef attnsim
_attnsim() {
  local -a found
  found=("${(@f)$("${words[1]}" complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
if [[ $funcstack[1] == _attnsim ]]; then _attnsim "$@"; else compdef _attnsim attnsim; fi
)";
constexpr const char* fish_script =
    "complete -c attnsim -a '(attnsim complete (commandline -opc)[2..-1] (commandline -ct) "
    "2>/dev/null)'\n";

void print_script(const std::string& shell) {
  if (shell == "bash") return fmt::print("{}", bash_script);
  if (shell == "zsh") return fmt::print("{}", zsh_script);
  if (shell == "fish") return fmt::print("{}", fish_script);
  throw input_error("SHELL", shell, expected_one_of(shell, known_names("SHELL")));
}

/// Not listed: the scripts call it with the words of a command line, the last one as far as it is typed.
void add_complete(CLI::App& app) {
  auto* command = app.add_subcommand("complete");
  command->group("");
  command->set_help_flag();
  command->prefix_command();
  command->callback([&app, command] {
    for (const auto& word : completions(app, command->remaining())) fmt::print("{}\n", word);
  });
}

}  // namespace

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>("bash");
  auto* command =
      app.add_subcommand("completion", "completes commands, flags and names in a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->capture_default_str();
  add_quiet(*command);
  command->footer(
      "Examples:\n"
      "  source <(attnsim completion)              in ~/.bashrc\n"
      "  source <(attnsim completion zsh)          in ~/.zshrc, after compinit\n"
      "  attnsim completion fish | source          in ~/.config/fish/config.fish");
  command->callback([shell] { print_script(*shell); });
  add_complete(app);
}

}  // namespace attnsim::cli
