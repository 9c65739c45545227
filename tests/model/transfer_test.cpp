#include "model/cost/transfer.hpp"

#include <gmock/gmock.h>

namespace attnsim {
namespace transfer_test {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

schedule on_grid(int rows, int cols) {
  schedule s;
  s.grid = rank_grid({rows, cols});
  return s;
}

constexpr axis_set column = only(0), row = only(1);

operation shift(axis_set axes) {
  return {.kind = op_kind::shift, .axes = axes, .distance = 1};
}

placed_ranks on_hosts(const cluster& c) {
  return {c, {0, 1, 2, 3}};
}

TEST(placed_ranks, works_out_who_sends_to_whom) {
  const auto c = read_cluster("star", {.nodes = 4});
  const auto p = on_hosts(c).pattern(on_grid(2, 2), shift(column));
  EXPECT_THAT(p->sent, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(p->received, ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(p->members, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(2, 0),
                                      ElementsAre(3, 1)));
}

// Gathering and reducing go round the same ring; another grid, axis or distance is another pattern.
TEST(placed_ranks, works_each_pattern_out_once) {
  const auto c = read_cluster("star", {.nodes = 4});
  const auto ranks = on_hosts(c);
  const operation gather{.kind = op_kind::all_gather, .axes = row};
  const operation reduce{.kind = op_kind::reduce_scatter, .axes = row};
  EXPECT_EQ(ranks.pattern(on_grid(2, 2), gather), ranks.pattern(on_grid(2, 2), reduce));
  EXPECT_EQ(ranks.pattern(on_grid(2, 2), shift(row)), ranks.pattern(on_grid(2, 2), shift(row)));
  EXPECT_NE(ranks.pattern(on_grid(2, 2), shift(row)), ranks.pattern(on_grid(2, 2), shift(column)));
  EXPECT_NE(ranks.pattern(on_grid(2, 2), shift(row)), ranks.pattern(on_grid(1, 4), shift(row)));
}

// The first group of two crosses the nodes of a cluster of two, the second stays in one.
TEST(placed_ranks, groups_of_a_collective_are_as_each_alone) {
  const auto c = read_cluster("nd-h100-v5", {.nodes = 2});
  const placed_ranks ranks(c, {0, 8, 1, 2});
  const auto p = ranks.pattern(on_grid(2, 2), {.kind = op_kind::all_to_all, .axes = row});
  ASSERT_EQ(p->flows.size(), 2u);
  const std::vector<std::vector<int>> groups{{0, 8}, {1, 2}};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto alone = pairs_flow(c, groups[i], 0);
    const auto& flow = p->flows[i];
    EXPECT_THAT(std::span(p->uses).subspan(flow.first_use, flow.last_use - flow.first_use),
                ElementsAreArray(alone.uses));
    EXPECT_EQ(flow.transport, i == 0 ? link_kind::network : link_kind::nvlink);
    EXPECT_EQ(flow.latency.fixed, alone.latency.fixed);
  }
}

}  // namespace transfer_test
}  // namespace attnsim
