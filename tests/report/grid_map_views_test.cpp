#include "report/grid_map_views.hpp"

#include <gtest/gtest.h>

namespace attnsim::report {
namespace grid_map_views_test {

prediction on(int rows, int cols, double time) {
  prediction p{.cluster = "p5", .ranks = 2};
  p.chosen = {.schedule = "mesh", .rows = rows, .cols = cols};
  p.time = seconds(time);
  return p;
}

ask::grid_map two_ranks() {
  return {.sides = {1, 2}, .best = {{std::nullopt, on(1, 2, 2)}, {on(2, 1, 1), std::nullopt}}};
}

TEST(grid_map_views, json_has_the_cells_that_run) {
  EXPECT_EQ(to_json(two_ranks()).dump(),
            R"({"schema":"attnsim.grid-map.1","cells":[)"
            R"({"grid":[1,2],"ulysses":1,"schedule":"mesh","time_s":2.0},)"
            R"({"grid":[2,1],"ulysses":1,"schedule":"mesh","time_s":1.0}]})");
}

TEST(grid_map_views, page_has_the_best_and_a_table) {
  const auto page = page_of(two_ranks());
  EXPECT_EQ(page.title, "Grids of 2 ranks of p5");
  EXPECT_EQ(page.answer, "mesh 2x1: 1.000 s, by the closed form");
  ASSERT_EQ(page.sections.size(), 1u);
  EXPECT_EQ(page.sections[0].rows.str(),
            "R \\ C        1        2\n"
            "    1        -  2.000 s\n"
            "    2  1.000 s        -\n");
  EXPECT_EQ(page.sections[0].chart["cells"][1].dump(),
            R"({"row":1,"column":0,"value":1.0,"name":"mesh 2x1"})");
}

}  // namespace grid_map_views_test
}  // namespace attnsim::report
