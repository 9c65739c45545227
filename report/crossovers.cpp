#include "report/crossovers.hpp"

#include <fmt/format.h>

#include "report/chart.hpp"

namespace attnsim::report {

namespace {

table times_of(const ask::crossing& x) {
  std::vector<std::string> header{x.of, "best"};
  for (const auto& [name, times] : x.times) header.push_back(name);
  table rows(header);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    std::vector<std::string> row{x.values[i], x.best(i).value_or("-")};
    for (const auto& [name, times] : x.times)
      row.push_back(times[i] > seconds{} ? to_string(times[i]) : "-");
    rows.add(row);
  }
  return rows;
}

}  // namespace

section crossovers(const ask::crossing& x, const std::string& note) {
  auto lines = json::array();
  for (const auto& [name, times] : x.times) {
    auto values = json::array();
    for (const auto t : times) values.push_back(t > seconds{} ? json(t.value()) : json());
    lines.push_back({{"name", name}, {"values", values}});
  }
  section s{.title = "Crossovers", .note = note, .rows = times_of(x)};
  s.chart = {{"kind", "lines"},    {"unit", "s"},      {"of", x.of},
             {"values", x.values}, {"asked", x.asked}, {"lines", lines}};
  return s;
}

std::string to_text(const ask::pass_crossing& x) {
  const auto first = x.first_of_queries();
  const auto best =
      first ? fmt::format(
                  "queries are better passed than keys where {} of all tokens are new, or fewer",
                  x.times.values[*first])
            : "queries are nowhere better passed than keys";
  const auto assumed =
      x.assumed_from ? fmt::format("from {} on kernel times of few query rows are assumed: {}\n",
                                   x.times.values[*x.assumed_from], x.assumed)
                     : "";
  return fmt::format("{}{}; both send as many bytes at {:.3f}\n{}", times_of(x.times).str(), best,
                     x.even_bytes, assumed);
}

}  // namespace attnsim::report
