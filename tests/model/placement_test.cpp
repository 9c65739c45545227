#include "model/schedule/placement.hpp"

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"

namespace attnsim {
namespace placement_test {

using ::testing::ElementsAre;

/// Nodes of 8 devices.
cluster nodes_of_eight(int nodes) {
  return read_cluster("nd-h100-v5", {.nodes = nodes});
}

TEST(placement, column_in_node_goes_down_columns) {
  EXPECT_THAT(place("column-in-node", rank_grid({2, 3}), nodes_of_eight(1)),
              ElementsAre(0, 2, 4, 1, 3, 5));
}

// Tiles 0 and 1 side by side; ranks 0 to 7 are the first row.
TEST(placement, tiles_fill_nodes) {
  EXPECT_THAT(place("tile:2x4", rank_grid({2, 8}), nodes_of_eight(2)),
              ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15));
}

TEST(placement, rails_hold_consecutive_ranks) {
  EXPECT_THAT(place("rails", rank_grid({2, 4}), nodes_of_eight(1)),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(place("rails", rank_grid({2, 8}), nodes_of_eight(2)),
              ElementsAre(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
}

// An exchange of heads in groups of 2 and a ring of 8: one of the two is inside the nodes.
TEST(placement, rails_swap_what_is_inside_a_node) {
  const auto c = nodes_of_eight(2);
  const rank_grid grid({8, 1, 2});
  const auto node_of = [&](const char* placement, int rank) {
    return c.network.node_of(place(placement, grid, c)[static_cast<std::size_t>(rank)]);
  };
  EXPECT_EQ(node_of("node-major", 0), node_of("node-major", 1));
  EXPECT_NE(node_of("rails", 0), node_of("rails", 1));
  for (int rank = 2; rank < 16; rank += 2) EXPECT_EQ(node_of("rails", 0), node_of("rails", rank));
}

// On 8 x 8 and nodes of 8, node-major is tile:1x8, column-in-node 8x1 but for the order of nodes, tile-in-node 4x2.
TEST(placement, search_tries_each_arrangement_once) {
  EXPECT_THAT(distinct_placements(rank_grid({8, 8}), nodes_of_eight(8)),
              ElementsAre("node-major", "column-in-node", "tile-in-node", "tile:2x4"));
  EXPECT_THAT(distinct_placements(rank_grid({4, 1, 2}), nodes_of_eight(1)),
              ElementsAre("node-major"));
}

TEST(placement, refuses_tiles_that_do_not_divide_the_grid) {
  EXPECT_ERROR(place("tile:3x1", rank_grid({2, 4}), nodes_of_eight(1)), input_error,
               "placement: 'tile:3x1': expected tile:RxC with R and C that divide the grid 2x4");
}

}  // namespace placement_test
}  // namespace attnsim
