#include "formats/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>

#include "formats/gzip.hpp"
#include "model/plain_text.hpp"
#include "model/read_file.hpp"

namespace attnsim::formats {
namespace {

constexpr std::string_view blanks = " \t\r\f\v";

/// "$ scontrol show topology", "root@node1:~# ", "[me@node1 ~]$ nvidia-smi topo -m".
bool is_prompt(std::string_view line) {
  const auto words = words_of(line);
  if (words.empty()) return false;
  if (words.front() == "$") return true;
  return words.front().find('@') != std::string_view::npos &&
         std::any_of(words.begin(), words.end(),
                     [](auto w) { return w.ends_with('$') || w.ends_with('#'); });
}

}  // namespace

source read_source(const std::string& path) {
  const std::string name = path == "-" ? "<stdin>" : path;
  auto bytes = path == "-" ? read_bytes(std::cin, name) : read_bytes(path);
  return {name, plain_text(unpacked(std::move(bytes), name))};
}

void fail_at(const source& from, std::size_t line, const std::string& message) {
  throw input_error(fmt::format("{}:{}: {}", from.name, line, message));
}

void fail_at(const source& from, std::size_t line, std::string_view key, std::string_view value,
             std::string_view expected) {
  throw input_error(fmt::format("{}:{}: {}", from.name, line, key), std::string(value),
                    std::string(expected));
}

std::vector<text_line> lines_of(std::string_view text, char comment) {
  std::vector<text_line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_prompt(line)) continue;
    if (comment != '\0') line = line.substr(0, line.find(comment));
    if (!trimmed(line).empty()) lines.push_back({number, line});
  }
  return lines;
}

std::string without_prompts(std::string_view text) {
  std::string rest;
  for (const auto line : split(text, '\n')) {
    if (!is_prompt(line)) rest += line;
    rest += '\n';
  }
  rest.pop_back();
  return rest;
}

char first_letter(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n\f\v");
  return first == std::string_view::npos ? '\0' : text[first];
}

bool has_key(std::string_view text, std::string_view key) {
  return text.starts_with(key) || text.find("\n" + std::string(key)) != std::string_view::npos;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (auto rest = trimmed(line); !rest.empty();) {
    const auto end = std::min(rest.find_first_of(blanks), rest.size());
    words.push_back(rest.substr(0, end));
    rest = trimmed(rest.substr(end));
  }
  return words;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace attnsim::formats
