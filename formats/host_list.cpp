#include "formats/host_list.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "formats/source.hpp"
#include "formats/topology.hpp"

namespace attnsim::formats {
namespace {

constexpr std::size_t most_digits = 9;

[[noreturn]] void fail() {
  throw std::invalid_argument("expected a host list, such as node[01-08,10]");
}

void append(std::vector<std::string>& names, std::string name) {
  if (names.size() == most_parts) {
    throw std::length_error(fmt::format("describes more than {} hosts", most_parts));
  }
  names.push_back(std::move(name));
}

/// What stands for "01-08,10" between brackets.
std::vector<std::string> numbers(std::string_view ranges) {
  std::vector<std::string> result;
  for (const auto range : split(ranges, ',')) {
    const auto dash = range.find('-');
    const auto first_text = range.substr(0, dash);
    const auto last_text = dash == std::string_view::npos ? first_text : range.substr(dash + 1);
    const auto first = to_number<int>(first_text), last = to_number<int>(last_text);
    if (!first || !last || *first < 0 || *last < *first || first_text.size() > most_digits ||
        last_text.size() > most_digits) {
      fail();
    }
    for (int n = *first; n <= *last; ++n) {
      append(result, fmt::format("{:0{}}", n, first_text.size()));
    }
  }
  return result;
}

/// The names of one item of the list; every pair of brackets multiplies them.
std::vector<std::string> expand(std::string_view item) {
  std::vector<std::string> names{""};
  while (!item.empty()) {
    const auto open = item.find('[');
    for (auto& name : names) name += item.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = item.find(']', open);
    if (close == std::string_view::npos) fail();
    std::vector<std::string> longer;
    const auto all = numbers(item.substr(open + 1, close - open - 1));
    for (const auto& name : names) {
      for (const auto& number : all) append(longer, name + number);
    }
    names = std::move(longer);
    item.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') inside = true;
    if (i < list.size() && list[i] == ']') inside = false;
    if (i < list.size() && (list[i] != ',' || inside)) continue;
    const auto item = list.substr(begin, i - begin);
    if (item.empty()) fail();
    for (auto& name : expand(item)) append(names, std::move(name));
    begin = i + 1;
  }
  return names;
}

}  // namespace attnsim::formats
