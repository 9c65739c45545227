// The manual page, written from the commands' own descriptions: man(7) macros.
#include <fmt/format.h>

#include <sstream>

#include "cli/commands.hpp"

namespace attnsim::cli {
namespace {

const auto any_command = [](const CLI::App*) { return true; };

/// As roff takes it for itself: no escapes, hyphens that can be copied, no line that starts a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() || out.back() == '\n') out += c == '.' || c == '\'' ? "\\&" : "";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return out;
}

/// ".B --nodes \fINUMBER\fR" for the reader; a positional argument is in italics.
std::string term(const CLI::Option& option) {
  if (option.get_positional()) return ".I " + roff(option.get_name(true, false));
  return ".B " + roff("--" + option.get_lnames().front());
}

void print_terms(const CLI::App& command) {
  for (const auto* option : command.get_options()) {
    if (option->get_lnames() == std::vector<std::string>{"help"}) continue;
    const auto usual = option->get_default_str();
    fmt::print(".TP\n{}\n{}{}\n", term(*option), roff(option->get_description()),
               usual.empty() ? "" : roff("\nDefault: " + usual + "."));
  }
}

void print_examples(const std::string& footer) {
  if (footer.empty()) return;
  fmt::print(".PP\n.nf\n");
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) fmt::print("{}\n", roff(line));
  fmt::print(".fi\n");
}

void print_section(const CLI::App& command, const std::string& path) {
  fmt::print(".SS {}\n{}\n", roff(path), roff(command.get_description()));
  const auto below = command.get_subcommands(any_command);
  if (below.empty()) print_terms(command);
  print_examples(command.get_footer());
  for (const auto* sub : below) print_section(*sub, path + " " + sub->get_name());
}

}  // namespace

void print_manual(const CLI::App& app) {
  fmt::print(".TH ATTNSIM 1 \"\" \"attnsim {}\"\n", ATTNSIM_VERSION);
  fmt::print(".SH NAME\nattnsim \\- predicts distributed attention and chooses how to run it\n");
  fmt::print(".SH SYNOPSIS\n.B attnsim\n.I COMMAND\n[\\fIARGUMENT\\fR ...]\n");
  fmt::print(".SH DESCRIPTION\n{}\n", roff(app.get_description()));
  fmt::print("Counts of tokens may end in K or M (128K, 1M).\n.SH COMMANDS\n");
  for (const auto* sub : app.get_subcommands(any_command)) {
    if (!sub->get_group().empty()) print_section(*sub, sub->get_name());
  }
  fmt::print(
      ".SH EXIT STATUS\n0 on success, 2 for bad input, 3 where no strategy fits, 1 for any other "
      "error.\n"
      ".SH ENVIRONMENT\n.TP\n.B ATTNSIM_TOPOLOGIES\nA folder of clusters, devices, hosts and "
      "frameworks that is looked in before the shipped one.\n.TP\n.B NO_COLOR\nNo colours on a "
      "terminal.\n");
}

}  // namespace attnsim::cli
