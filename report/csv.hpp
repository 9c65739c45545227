// Comma-separated values by RFC 4180, but that lines end in \n. Every CSV of the project is written by this.
//
//   csv_line("seq", "time_s")     == "seq,time_s"
//   csv_line("a, \"b\"", 0.5, 1)  == "\"a, \"\"b\"\"\",0.5,1"
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace attnsim::report {

/// Quoted when it holds a comma, a quote or an end of line.
inline std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return quoted + '"';
}

/// One line without its end.
inline std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) line += (i > 0 ? "," : "") + csv_field(fields[i]);
  return line;
}

/// The same of values, as fmt prints them.
template <typename... Value>
std::string csv_line(const Value&... values) {
  return csv_line(std::vector<std::string>{fmt::format("{}", values)...});
}

}  // namespace attnsim::report
