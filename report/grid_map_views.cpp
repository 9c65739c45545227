#include "report/grid_map_views.hpp"

#include <fmt/format.h>

#include "report/chart.hpp"
#include "report/results.hpp"

namespace attnsim::report {
namespace {

section map_of(const ask::grid_map& map) {
  section s{.title = "Time by grid",
            .note =
                "Best schedule on R rows and C columns by the closed form; what is left of the "
                "ranks are Ulysses' groups. Of R x C a row's ranks share queries, a column's keys "
                "and values."};
  std::vector<std::string> header{"R \\ C"};
  for (const int side : map.sides) header.push_back(fmt::format("{}", side));
  s.rows = table(header);
  auto cells = json::array();
  for (std::size_t r = 0; r < map.sides.size(); ++r) {
    std::vector<std::string> row{header[r + 1]};
    for (std::size_t c = 0; c < map.sides.size(); ++c) {
      const auto& cell = map.best[r][c];
      row.push_back(cell ? to_string(cell->time) : "-");
      if (cell)
        cells.push_back(
            {{"row", r}, {"column", c}, {"value", cell->time.value()}, {"name", name_of(*cell)}});
    }
    s.rows.add(row);
  }
  s.chart = {{"kind", "map"},  {"unit", "s"},        {"rows", "R"},
             {"columns", "C"}, {"sides", map.sides}, {"cells", cells}};
  return s;
}

}  // namespace

nlohmann::ordered_json to_json(const ask::grid_map& map) {
  auto cells = nlohmann::ordered_json::array();
  for (const auto& row : map.best) {
    for (const auto& cell : row) {
      if (!cell) continue;
      cells.push_back({{"grid", {cell->chosen.rows, cell->chosen.cols}},
                       {"ulysses", cell->chosen.ulysses},
                       {"schedule", cell->chosen.schedule},
                       {"time_s", cell->time.value()}});
    }
  }
  return {{"schema", "attnsim.grid-map.1"}, {"cells", std::move(cells)}};
}

page page_of(const ask::grid_map& map) {
  const auto& best = *map.fastest();
  return {.title = fmt::format("Grids of {} ranks of {}", best.ranks, best.cluster),
          .answer = fmt::format("{}: {}, by the closed form", name_of(best), to_string(best.time)),
          .facts = {{"problem", problem_of(best.problem)}},
          .sections = {map_of(map)},
          .result = to_json(map)};
}

}  // namespace attnsim::report
