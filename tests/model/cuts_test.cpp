#include "model/limit/cuts.hpp"

#include <gmock/gmock.h>

#include "model/cluster/cluster.hpp"

namespace attnsim {
namespace cuts_test {

using ::testing::IsEmpty;

cluster tree() {
  return read_cluster(config_node::parse_text(R"(
name: tree
device: ideal
nodes: 4
devices_per_node: 2
node: {links: nvswitch, bandwidth: 100 GB/s}
nics: {per_node: 1, bandwidth: 10 GB/s, attach: shared}
fabric: {kind: fat-tree, nodes_per_leaf: 2, oversubscription: 4}
)",
                                              "tree"));
}

const cut* of(const std::vector<cut>& all, int first, int last) {
  for (const auto& one : all) {
    if (one.first == first && one.last == last) return &one;
  }
  return nullptr;
}

TEST(cuts, hold_devices_nodes_and_what_shares_a_leaf) {
  const auto c = tree();
  const auto all = cuts_of(c.network, {0, 1, 2, 3, 4, 5, 6, 7});
  ASSERT_NE(of(all, 3, 3), nullptr);
  EXPECT_EQ(of(all, 2, 3)->out.value(), 10e9) << "a node's NIC";
  EXPECT_EQ(of(all, 2, 3)->in.value(), 10e9);
  EXPECT_EQ(of(all, 4, 7)->out.value(), 5e9) << "two nodes' uplinks, 4 to 1";
  EXPECT_EQ(of(all, 0, 5)->out.value(), 15e9) << "the first leaf's uplinks and a node of the other";
}

TEST(cuts, are_named_by_what_their_links_join) {
  const auto c = tree();
  EXPECT_EQ(name_of(c.network, {.first = 2, .last = 3}), "the links of node1 (nic to leaf)");
  EXPECT_EQ(name_of(c.network, {.first = 4, .last = 7}),
            "the links of node2 to node3 (leaf to spine)");
  EXPECT_EQ(name_of(c.network, {.first = 5, .last = 5}),
            "the links of node2.gpu1 (gpu to nvswitch)");
}

TEST(cuts, have_devices_in_use_on_both_sides) {
  const auto c = tree();
  EXPECT_THAT(cuts_of(c.network, {0}), IsEmpty());
  const auto all = cuts_of(c.network, {0, 1, 2, 3});
  EXPECT_EQ(of(all, 0, 3), nullptr);
  EXPECT_NE(of(all, 0, 1), nullptr);
}

}  // namespace cuts_test
}  // namespace attnsim
