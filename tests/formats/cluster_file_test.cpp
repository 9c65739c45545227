#include "formats/cluster_file.hpp"

#include <gmock/gmock.h>

#include "model/cluster/cluster.hpp"
#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace cluster_file_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

topology node_with_nic() {
  topology t{.what = scope::node, .device = "h100-sxm5", .nic_rate = bandwidth(25e9)};
  const auto g = t.add(part_kind::device, "a: \"b\"", 0), x = t.add(part_kind::nic, "null", 0);
  t.join(g, x, bandwidth(1e9 / 3), seconds(1e-6), link_kind::pcie);
  return t;
}

TEST(write_cluster_file, says_what_was_read_and_reads_back) {
  machine m{.inside = node_with_nic(), .said = {.read = {"one\nline"}, .warnings = {"careful"}}};
  const auto text = write_cluster_file(m, {.name = "my cluster", .nodes = 3}).text;
  EXPECT_THAT(text, StartsWith("# Read: one line\n# Assumed: a star: one switch that never limits\n"
                               "# Missing: the network between nodes: --fabric, or a file of the "
                               "fabric\n# Warning: careful\nname: \"my cluster\"\n"));
  EXPECT_THAT(text, HasSubstr("bandwidth: 0.3333333333 GB/s, latency: 1 us, kind: pcie"));
  const auto c = read_cluster(config_node::parse_text(text, "c"));
  EXPECT_EQ(c.name, "my cluster");
  EXPECT_EQ(c.devices(), 3);
  // In each node one cable, to the star one: both ways.
  EXPECT_EQ(c.network.links().size(), 2u * (3 + 3));
}

TEST(write_cluster_file, takes_a_fabric_line) {
  const machine m{.inside = node_with_nic(), .nodes = 2, .said = {}};
  const auto text =
      write_cluster_file(m, {.name = "c", .fabric = "{kind: fat-tree, nodes_per_leaf: 1}"}).text;
  EXPECT_THAT(text, HasSubstr("\nnodes: 2\n"));
  EXPECT_THAT(text, HasSubstr("\nfabric: {kind: fat-tree, nodes_per_leaf: 1}\n"));
  EXPECT_THAT(text, Not(HasSubstr("never limits")));
  EXPECT_ERROR(write_cluster_file(m, {.name = "c", .fabric = "{kind: woven}"}), input_error,
               "what was read makes no cluster: c:14: fabric.kind: 'woven': expected one of: star, "
               "fat-tree, rail-optimized, dragonfly, torus, multi-plane, graph, none");
}

TEST(write_cluster_file, a_whole_cluster_is_an_explicit_graph) {
  topology all{.what = scope::cluster};
  const auto a = all.add(part_kind::device, "a", 0), b = all.add(part_kind::device, "b", 1);
  all.join(a, b, bandwidth(5e9), {}, link_kind::network, false);
  all.join(b, a, bandwidth(6e9), {}, link_kind::network, false);
  const auto text = write_cluster_file({.inside = all, .said = {}}, {.name = "c"}).text;
  EXPECT_THAT(text, HasSubstr("device: ideal\ngraph:\n  vertices:\n"
                              "  - {name: a, kind: device, node: 0}\n"));
  EXPECT_EQ(read_cluster(config_node::parse_text(text, "c")).network.links().size(), 2u);
}

TEST(write_cluster_file, refuses_parts_that_cannot_reach_each_other) {
  topology all{.what = scope::cluster};
  all.add(part_kind::device, "a", 0);
  all.add(part_kind::device, "b", 1);
  EXPECT_ERROR(write_cluster_file({.inside = all, .said = {}}, {.name = "c"}), input_error,
               "what was read makes no cluster: c:4: graph.links: '': no path from a to b");
}

}  // namespace cluster_file_test
}  // namespace attnsim::formats
