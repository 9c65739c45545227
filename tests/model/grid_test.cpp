#include "model/schedule/grid.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace attnsim {
namespace grid_test {

// 2 x 3, row-major:  0 1 2
//                    3 4 5
TEST(rank_grid, rank_4_of_2_by_3) {
  const rank_grid grid({2, 3});
  EXPECT_EQ(grid.coordinate(4, 0), 1);
  EXPECT_EQ(grid.coordinate(4, 1), 1);
  EXPECT_EQ(grid.group(4, only(1)), (std::vector<int>{3, 4, 5}));  // its row
  EXPECT_EQ(grid.group(4, only(0)), (std::vector<int>{1, 4}));     // its column
  EXPECT_EQ(grid.group(4, only(0) | only(1)), (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(rank_grid, shifts_wrap_around) {
  const rank_grid grid({2, 3});
  EXPECT_EQ(grid.shifted(5, 1, 1), 3);
  EXPECT_EQ(grid.shifted(3, 1, -1), 5);
  EXPECT_EQ(grid.shifted(3, 0, 5), 0);
  EXPECT_EQ(grid.shifted(0, 1, -7), 2);
}

TEST(rank_grid, transposes_square_grids) {
  const rank_grid grid({3, 3});
  EXPECT_EQ(grid.transposed(1), 3);
  EXPECT_EQ(grid.transposed(4), 4);
  EXPECT_EQ(grid.transposed(5), 7);
}

TEST(rank_grid, groups_are_numbered_by_the_other_coordinates) {
  const rank_grid grid({2, 3, 2});
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    const auto group = grid.group(rank, only(1));
    EXPECT_EQ(group[static_cast<std::size_t>(grid.place_in_group(rank, only(1)))], rank);
    EXPECT_EQ(group.front(), grid.first_in_group(rank, only(1)));
    for (const int peer : group)
      EXPECT_EQ(grid.group_index(peer, only(1)), grid.group_index(rank, only(1)));
  }
}

TEST(rank_grid, refuses_empty_axes) {
  EXPECT_THROW(rank_grid({2, 0}), std::invalid_argument);
}

}  // namespace grid_test
}  // namespace attnsim
