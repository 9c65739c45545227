#include "report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/units.hpp"
#include "report/chart.hpp"

namespace attnsim::report {
namespace {

std::string text(double value, const std::string& unit) {
  if (unit == "s") return to_string(seconds(value));
  if (unit == "B") return to_string(byte_count(static_cast<std::int64_t>(value)));
  return fmt::format("{:.4g}", value);
}

/// "-" where nothing was measured.
std::string error(const comparison& f) {
  return f.measured == 0 ? "-" : fmt::format("{:+.1f} %", 100 * (f.predicted / f.measured - 1));
}

std::string label(const comparison& f) {
  return f.series.empty() ? f.name : f.series + ": " + f.name;
}

/// The words with which all labels begin, where any is longer than the chart's margin.
std::string shared_words(const std::vector<comparison>& figures) {
  constexpr std::size_t margin = 46;
  if (figures.size() < 2) return "";
  auto shared = label(figures[0]);
  std::size_t longest = 0;
  for (const auto& f : figures) {
    const auto text = label(f);
    longest = std::max(longest, text.size());
    const auto differ = std::mismatch(shared.begin(), shared.end(), text.begin(), text.end()).first;
    shared.erase(differ, shared.end());
  }
  return longest > margin ? shared.substr(0, shared.rfind(' ') + 1) : "";
}

}  // namespace

section predicted_against(const std::string& measured, const std::string& unit,
                          const std::vector<comparison>& figures) {
  constexpr std::size_t most_rows = 24;
  section s{.title = fmt::format("Predicted against {}", measured),
            .rows = table({"", "figure", measured, "predicted", "error"})};
  const bool points = figures.size() > most_rows;
  const auto shared = points ? "" : shared_words(figures);
  if (!shared.empty()) s.note = fmt::format("All of {}", shared.substr(0, shared.size() - 1));
  auto rows = json::array();
  for (const auto& f : figures) {
    const bool shortened = !shared.empty();
    rows.push_back({{"series", shortened ? "" : f.series},
                    {"name", shortened ? label(f).substr(shared.size()) : f.name},
                    {"measured", f.measured},
                    {"predicted", f.predicted}});
    if (f.high > f.low) rows.back().update({{"low", f.low}, {"high", f.high}});
    s.rows.add({f.series, f.name, text(f.measured, unit), text(f.predicted, unit), error(f)});
  }
  s.chart = {{"kind", points ? "scatter" : "pairs"},
             {"unit", unit},
             {"measured", measured},
             {"rows", rows}};
  return s;
}

}  // namespace attnsim::report
