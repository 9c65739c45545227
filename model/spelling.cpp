#include "model/spelling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace attnsim {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (auto& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

namespace {

/// Rows of the table of distances between the beginnings of both: the latest and the two before it.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before_last, last, row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view text, const std::vector<std::string>& names) {
  constexpr std::size_t longest = 100;
  if (text.empty() || text.size() > longest) return "";
  const auto wanted = lower_case(text);
  std::string best;
  std::size_t least = longest;
  for (const auto& name : names) {
    const auto far = distance(wanted, lower_case(name));
    if (far <= std::max(wanted.size(), name.size()) / 3 && far < least) {
      least = far;
      best = name;
    }
  }
  if (!best.empty()) return best;
  const auto begins = [&](const std::string& name) { return lower_case(name).starts_with(wanted); };
  const auto first = std::find_if(names.begin(), names.end(), begins);
  return first == names.end() ? "" : *first;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& names) {
  const auto near = nearest(text, names);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

std::string expected_one_of(std::string_view text, const std::vector<std::string>& names) {
  return fmt::format("expected one of: {}{}", fmt::join(names, ", "), did_you_mean(text, names));
}

}  // namespace attnsim
