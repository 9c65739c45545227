#include "report/crossovers.hpp"

#include "report/chart.hpp"

namespace attnsim::report {

section crossovers(const ask::crossing& x, const std::string& note) {
  std::vector<std::string> header{x.of, "best"};
  auto lines = json::array();
  for (const auto& [name, times] : x.times) {
    header.push_back(name);
    auto values = json::array();
    for (const auto t : times) values.push_back(t > seconds{} ? json(t.value()) : json());
    lines.push_back({{"name", name}, {"values", values}});
  }
  section s{.title = "Crossovers", .note = note, .rows = table(header)};
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    std::vector<std::string> row{x.values[i], x.best(i).value_or("-")};
    for (const auto& [name, times] : x.times)
      row.push_back(times[i] > seconds{} ? to_string(times[i]) : "-");
    s.rows.add(row);
  }
  s.chart = {{"kind", "lines"},    {"unit", "s"},      {"of", x.of},
             {"values", x.values}, {"asked", x.asked}, {"lines", lines}};
  return s;
}

}  // namespace attnsim::report
