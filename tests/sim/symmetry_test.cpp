#include "sim/symmetry.hpp"

#include <gmock/gmock.h>

#include "model/config.hpp"
#include "tests/ring_exchanges.hpp"

namespace attnsim {
namespace symmetry_test {

using testing::ElementsAre;
using testing::SizeIs;

cluster star(int nodes, const std::string& extra = "") {
  return read_cluster(config_node::parse_text(
      "name: star\ndevice: ideal\nnodes: " + std::to_string(nodes) +
          "\ndevices_per_node: 1\nnode: {links: none}\n"
          "nics: {per_node: 1, bandwidth: 50 GB/s}\nfabric: {kind: star}\n" +
          extra,
      "star.yaml"));
}

placed_schedule exchanges(const cluster& c, int rows, int cols) {
  return {c,
          exchange_problem(rows * cols, 1 << 20),
          {.tokens = token_layout::contiguous},
          ring_exchanges(rows, cols, true)};
}

// All links have 50 GB/s and carry one flow: one class of each kind.
TEST(symmetry, a_ring_on_a_star_is_one_rank_one_flow_one_link) {
  const auto c = star(8);
  const auto i = exchanges(c, 8, 1);
  const auto s = find_symmetry(i);
  EXPECT_THAT(s.rank_of_class, ElementsAre(0));
  EXPECT_THAT(s.flow_of_class, ElementsAre(ElementsAre(0)));
  EXPECT_THAT(s.link_of_class, SizeIs(1));
  EXPECT_EQ(s.links_in_class[0], c.network.links().size());
  EXPECT_THAT(s.uses, ElementsAre(ElementsAre(ElementsAre(link_use{0, 1}))));
}

// Every link carries one flow along a row and one along a column.
TEST(symmetry, rows_and_columns_share_the_links) {
  const auto c = star(16);
  const auto s = find_symmetry(exchanges(c, 4, 4));
  EXPECT_THAT(s.rank_of_class, SizeIs(1));
  EXPECT_THAT(s.uses, ElementsAre(ElementsAre(ElementsAre(link_use{0, 1})),
                                  ElementsAre(ElementsAre(link_use{0, 1}))));
}

// Seen from a straggler, every rank of a ring is at another distance.
TEST(symmetry, a_straggler_or_a_slow_link_sets_all_ranks_of_a_ring_apart) {
  for (const auto* extra :
       {"slow_devices: {2: 0.5}\n", "slow_links: {switch0->node2.nic0: 0.5}\n"}) {
    const auto c = star(8, extra);
    EXPECT_THAT(find_symmetry(exchanges(c, 8, 1)).rank_of_class, SizeIs(8)) << extra;
  }
}

// Every other rank takes twice as long: two classes, and what goes from one to the other.
TEST(symmetry, unequal_work_splits_by_pattern) {
  const auto c = star(8);
  auto i = exchanges(c, 8, 1);
  i.use_local_times([](std::size_t, int rank) { return seconds(1e-3 * (1 + rank % 2)); });
  const auto s = find_symmetry(i);
  EXPECT_THAT(s.rank_class, ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(s.flow_class, ElementsAre(ElementsAre(0, 1, 0, 1, 0, 1, 0, 1)));
}

TEST(symmetry, unmerged_everything_stands_for_itself) {
  const auto c = star(8);
  const auto s = find_symmetry(exchanges(c, 8, 1), false);
  EXPECT_THAT(s.rank_of_class, SizeIs(8));
  EXPECT_THAT(s.flow_of_class, ElementsAre(SizeIs(8)));
  EXPECT_THAT(s.link_of_class, SizeIs(c.network.links().size()));
}

}  // namespace symmetry_test
}  // namespace attnsim
