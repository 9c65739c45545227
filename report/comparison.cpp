#include "report/comparison.hpp"

#include <fmt/format.h>

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

}  // namespace

section predicted_against(const std::string& measured, const std::string& unit,
                          const std::vector<comparison>& figures) {
  constexpr std::size_t most_rows = 24;
  section s{.title = fmt::format("Predicted against {}", measured),
            .rows = table({"", "figure", measured, "predicted", "error"})};
  auto rows = json::array();
  for (const auto& f : figures) {
    rows.push_back({{"series", f.series},
                    {"name", f.name},
                    {"measured", f.measured},
                    {"predicted", f.predicted}});
    if (f.high > f.low) rows.back().update({{"low", f.low}, {"high", f.high}});
    s.rows.add({f.series, f.name, text(f.measured, unit), text(f.predicted, unit), error(f)});
  }
  s.chart = {{"kind", figures.size() > most_rows ? "scatter" : "pairs"},
             {"unit", unit},
             {"measured", measured},
             {"rows", rows}};
  return s;
}

}  // namespace attnsim::report
