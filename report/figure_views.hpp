// Figures of an answer (ask/figures.hpp) as programs read them, JSON and CSV, and as people do.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ask/figures.hpp"

namespace attnsim::report {

/// Pairs and lists as arrays, parts as an object.
nlohmann::ordered_json to_json(const ask::value&);

/// "1.344 ms" for seconds, "2.297 GiB" for bytes, "602.3 TFLOP/s"; of several parts the first.
std::string text_of(const ask::value&, std::string_view unit);

/// Names and fields of a figure's columns: "grid.0" and "grid.1" of a pair, "bottleneck.kind" of parts, none of a list.
using csv_columns = std::vector<std::pair<std::string, std::string>>;
csv_columns columns_of(std::string_view name, const ask::value&);

/// What JSON has there: "text", "[number, number]", "{max: whole number, mean: number}".
std::string kind_of(const ask::value&);

/// All figures, as one object or row.
template <typename Answer>
nlohmann::ordered_json json_of_figures(const Answer& a) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& f : ask::figures<Answer>()) object[std::string(f.name)] = to_json(f.get(a));
  return object;
}

template <typename Answer>
csv_columns columns_of_figures(const Answer& a) {
  csv_columns all;
  for (const auto& f : ask::figures<Answer>()) {
    for (auto& column : columns_of(f.name, f.get(a))) all.push_back(std::move(column));
  }
  return all;
}

/// A row a figure, as docs/files.md has them: "| `time_s` | number, in s | of all passes |".
template <typename Answer>
std::string reference_of_figures() {
  std::string rows = "| key | value | meaning |\n|---|---|---|\n";
  for (const auto& f : ask::figures<Answer>()) {
    const auto unit = f.unit.empty() ? "" : fmt::format(", in {}", f.unit);
    rows += fmt::format("| `{}` | {}{} | {} |\n", f.name, kind_of(f.get({})), unit, f.help);
  }
  return rows;
}

}  // namespace attnsim::report
