// What a misspelt name was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attnsim {

std::string lower_case(std::string_view text);

/// Of `names` the one that `text` most resembles, whatever the case of its letters: at most a third of its letters
/// missing, added, exchanged or swapped with their neighbour (optimal string alignment distance); else the first that
/// begins with `text`. Empty: none does.
std::string nearest(std::string_view text, const std::vector<std::string>& names);

/// "; did you mean ring?", or nothing where no name is near.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& names);

/// "expected one of: ring, mesh; did you mean ring?"
std::string expected_one_of(std::string_view text, const std::vector<std::string>& names);

/// The `name` members of a table's rows.
template <typename Table>
std::vector<std::string> names_in(const Table& table) {
  std::vector<std::string> names;
  for (const auto& row : table) names.emplace_back(row.name);
  return names;
}

}  // namespace attnsim
