// Enumerations with names: one table serves printing, parsing and the message that lists what is possible.
#pragma once

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/spelling.hpp"

namespace attnsim {

template <typename Enum, std::size_t N>
using name_table = std::array<std::pair<Enum, std::string_view>, N>;

template <typename Enum, std::size_t N>
constexpr std::string_view find_name(const name_table<Enum, N>& table, Enum value) {
  for (const auto& [v, name] : table) {
    if (v == value) return name;
  }
  return "?";
}

template <typename Enum, std::size_t N>
Enum find_value(const name_table<Enum, N>& table, std::string_view text) {
  std::vector<std::string> names;
  for (const auto& [value, name] : table) {
    if (name == text) return value;
    names.emplace_back(name);
  }
  throw std::invalid_argument(expected_one_of(text, names));
}

/// The row of a table whose `name` is `text`; throws likewise.
template <typename Table>
const auto& find_named(const Table& table, std::string_view text) {
  for (const auto& row : table) {
    if (row.name == text) return row;
  }
  throw std::invalid_argument(expected_one_of(text, names_in(table)));
}

}  // namespace attnsim
