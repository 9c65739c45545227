// The text of a file to import, with limits, and what its readers share: lines, words, numbers, and
// messages that name file and line.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.hpp"

namespace attnsim::formats {

struct source {
  std::string name;  ///< for messages
  std::string text;
};

/// The plain text (model/plain_text.hpp) of a file, or of standard input for "-", gzip unpacked. Throws
/// input_error when it cannot be read or is larger than 64 MiB.
source read_source(const std::string& path);

/// Throws input_error "NAME:LINE: MESSAGE".
[[noreturn]] void fail_at(const source&, std::size_t line, const std::string& message);
/// Throws input_error "NAME:LINE: KEY: 'VALUE': EXPECTED".
[[noreturn]] void fail_at(const source&, std::size_t line, std::string_view key,
                          std::string_view value, std::string_view expected);

struct text_line {
  std::size_t number = 0;  ///< from 1
  std::string_view text;
};

/// Lines that hold more than blanks and are no shell's prompt, without what follows `comment`; '\0'
/// for no comments.
std::vector<text_line> lines_of(std::string_view text, char comment = '\0');

/// The text with blank lines for shells' prompts.
std::string without_prompts(std::string_view text);

/// The first letter that is no blank and no line's end; '\0': none.
char first_letter(std::string_view text);

/// Whether a line begins with `key`.
bool has_key(std::string_view text, std::string_view key);

std::vector<std::string_view> words_of(std::string_view line);
std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trimmed(std::string_view text);

/// The whole text as a number, or nothing.
template <typename Number>
std::optional<Number> to_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace attnsim::formats
