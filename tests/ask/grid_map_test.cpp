#include "ask/grid_map.hpp"

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/ring_on_star.hpp"

namespace attnsim::ask {
namespace grid_map_test {

question four_ranks() {
  question q{.sequence = 65536, .heads = 4, .kv_heads = 2, .mask = mask_kind::full};
  q.pass = pass_kind::forward;
  return q;
}

TEST(grid_map, cells_are_the_grids_whose_places_divide_the_ranks) {
  const auto map = map_grids(four_ranks(), star(4), {"usp", "ring", "attention2d"});
  EXPECT_EQ(map.sides, (std::vector{1, 2, 4}));
  ASSERT_EQ(map.best.size(), 3u);
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      const auto& cell = map.best[r][c];
      ASSERT_EQ(cell.has_value(), r + c <= 2) << r << c;
      if (!cell) continue;
      EXPECT_EQ(cell->chosen.rows, map.sides[r]);
      EXPECT_EQ(cell->chosen.cols, map.sides[c]);
      EXPECT_EQ(cell->chosen.rows * cell->chosen.cols * cell->chosen.ulysses, 4);
    }
  }
}

TEST(grid_map, a_cell_has_the_fastest_schedule) {
  const auto c = star(4);
  const auto both = map_grids(four_ranks(), c, {"ring", "attention2d"});
  for (const auto* name : {"ring", "attention2d"}) {
    const auto alone = map_grids(four_ranks(), c, {name});
    ASSERT_NE(alone.fastest(), nullptr);
    EXPECT_LE(both.fastest()->time, alone.fastest()->time) << name;
  }
}

TEST(grid_map, what_a_schedule_refuses_is_left_out) {
  const auto map = map_grids(four_ranks(), star(4), {"ring"});
  EXPECT_TRUE(map.best[2][0]);   // 4 x 1
  EXPECT_FALSE(map.best[0][2]);  // 1 x 4
}

TEST(grid_map, needs_tokens) {
  auto q = four_ranks();
  q.sequence.reset();
  EXPECT_THROW(map_grids(q, star(4), {}), input_error);
}

TEST(grid_map, says_how_far_it_is) {
  std::size_t calls = 0;
  map_grids(four_ranks(), star(4), {"ring"}, [&](std::size_t done, std::size_t wanted) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(wanted, 9u);
  });
  EXPECT_EQ(calls, 9u);
}

}  // namespace grid_map_test
}  // namespace attnsim::ask
