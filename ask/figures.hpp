// What there is to say of an answer, as one table of its figures. JSON, CSV, a sweep's columns, Python's
// properties with their stub and the keys in docs/files.md are made from it: a new figure is one row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ask/predict.hpp"

namespace attnsim::ask {

/// One of several values that belong together.
struct part {
  std::string_view name;
  std::variant<std::int64_t, double, std::string> is;

  bool operator==(const part&) const = default;
};

using whole_pair = std::pair<std::int64_t, std::int64_t>;
using number_pair = std::pair<double, double>;

using value = std::variant<bool, std::int64_t, double, std::string, whole_pair, number_pair,
                           std::vector<part>, std::vector<std::int64_t>, std::vector<std::string>>;

/// A row of the table.
template <typename Answer>
struct figure {
  std::string_view
      name;  ///< "time_s": JSON's key, Python's property, the CSV column or its beginning
  std::string_view unit;  ///< "s", "bytes" or "TFLOP/s"; empty: a name or a count
  std::string_view help;
  value (*get)(const Answer&);
};

/// In the order in which they are written. The figures of an empty answer tell their types and the names of their parts.
template <typename Answer>
std::span<const figure<Answer>> figures();

template <>
std::span<const figure<prediction>> figures();
template <>
std::span<const figure<pass_prediction>> figures();
/// Of the problem that an answer is about.
template <>
std::span<const figure<attention>> figures();

}  // namespace attnsim::ask
