#include "report/comparison.hpp"

#include <fmt/format.h>

#include "model/units.hpp"
#include "report/chart.hpp"

namespace attnsim::report {

section predicted_against(const std::string& measured, const std::string& unit,
                          const std::vector<comparison>& figures) {
  constexpr std::size_t most_rows = 24;
  section s{.title = fmt::format("Predicted against {}", measured),
            .rows = table({"", "figure", measured, "predicted", "error"})};
  const auto text = [&](double value) {
    return unit == "s" ? to_string(seconds(value)) : fmt::format("{:.4g}", value);
  };
  auto rows = json::array();
  for (const auto& f : figures) {
    rows.push_back({{"series", f.series},
                    {"name", f.name},
                    {"measured", f.measured},
                    {"predicted", f.predicted}});
    if (f.high > f.low) rows.back().update({{"low", f.low}, {"high", f.high}});
    s.rows.add({f.series, f.name, text(f.measured), text(f.predicted),
                fmt::format("{:+.1f} %", 100 * (f.predicted / f.measured - 1))});
  }
  s.chart = {{"kind", figures.size() > most_rows ? "scatter" : "pairs"},
             {"unit", unit},
             {"measured", measured},
             {"rows", rows}};
  return s;
}

}  // namespace attnsim::report
