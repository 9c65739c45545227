// Enumerations with names: one table serves printing, parsing and the message that lists what is possible.
#pragma once

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

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
  std::string names;
  for (const auto& [value, name] : table) {
    if (name == text) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  throw std::invalid_argument("expected one of: " + names);
}

}  // namespace attnsim
