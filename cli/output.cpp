#include "cli/output.hpp"

#include <fmt/color.h>
#include <unistd.h>

#include <cstdlib>
#include <regex>

#include "model/error.hpp"
#include "model/spelling.hpp"

namespace attnsim::cli {
namespace {

std::string in(fmt::terminal_color colour, const std::string& text) {
  return text.empty() ? text : fmt::format(fmt::fg(colour), "{}", text);
}

std::string painted_line(const std::string& line) {
  static const std::regex bar(R"((.*)\[(#*)(\.*)\])"), warning("warning.*");
  std::smatch part;
  if (std::regex_match(line, warning)) return in(fmt::terminal_color::yellow, line);
  if (!std::regex_match(line, part, bar)) return line;
  return fmt::format("{}[{}{}]", part.str(1), in(fmt::terminal_color::blue, part.str(2)),
                     in(fmt::terminal_color::yellow, part.str(3)));
}

}  // namespace

output_format parse_format(const std::string& text) {
  if (text == "table") return output_format::table;
  if (text == "json") return output_format::json;
  if (text == "csv") return output_format::csv;
  throw input_error("--format", text, expected_one_of(text, {"table", "json", "csv"}));
}

std::string painted(const std::string& text) {
  std::istringstream lines(text);
  std::string out, line;
  for (bool header = true; std::getline(lines, line); header = false)
    out += (header ? fmt::format(fmt::emphasis::bold, "{}", line) : painted_line(line)) + "\n";
  return out;
}

void print_json(const nlohmann::ordered_json& json, int indent) {
  fmt::print("{}\n", json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_table(const std::string& text) {
  const char* refused = std::getenv("NO_COLOR");
  const bool plain = isatty(STDOUT_FILENO) == 0 || (refused != nullptr && *refused != '\0');
  fmt::print("{}", plain ? text : painted(text));
}

}  // namespace attnsim::cli
