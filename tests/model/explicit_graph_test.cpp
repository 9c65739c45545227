#include "model/cluster/explicit_graph.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "tests/expect_error.hpp"
#include "tests/model/read_text.hpp"

namespace attnsim {
namespace explicit_graph_test {

using testing::ElementsAre;

network build(const std::string& text) {
  return build_explicit_graph(config_node::parse_text(text, "g.yaml"));
}

TEST(explicit_graph, least_latency_wins_then_fewest_hops) {
  // a to b: 3 us direct; 2 us over s and t (three links), 2 us over u (two links).
  const auto net = build(
      "vertices:\n"
      "- {name: a, kind: device, node: 4}\n"
      "- {name: b, kind: device}\n"
      "- {name: s, kind: switch}\n"
      "- {name: t, kind: switch}\n"
      "- {name: u, kind: nic}\n"
      "links:\n"
      "- {from: a, to: b, bandwidth: 1 GB/s, latency: 3 us, kind: nvlink, duplex: false}\n"
      "- {from: a, to: s, bandwidth: 1 GB/s, latency: 0.5 us}\n"
      "- {from: s, to: t, bandwidth: 1 GB/s, latency: 1 us}\n"
      "- {from: t, to: b, bandwidth: 1 GB/s, latency: 0.5 us}\n"
      "- {from: a, to: u, bandwidth: 1 GB/s, latency: 1 us, kind: pcie}\n"
      "- {from: u, to: b, bandwidth: 1 GB/s, latency: 1 us}\n");
  EXPECT_EQ(net.links().size(), 1u + 5 * 2);
  EXPECT_THAT(stops(net, 0, 1), ElementsAre("a", "u", "b"));
  EXPECT_THAT(stops(net, 1, 0), ElementsAre("b", "u", "a"));
  EXPECT_EQ(net.node_of(0), 4);
  EXPECT_EQ(net.node_of(1), -1);
  EXPECT_EQ(net.vertices()[4].kind, vertex_kind::nic);
  EXPECT_EQ(net.links()[0].kind, link_kind::nvlink);
  EXPECT_EQ(net.links()[1].kind, link_kind::network);
}

/// Devices a to d and a NIC of one node below a PCIe switch; links of `more`.
network node_of_four(const std::string& more) {
  return build(
      "vertices:\n"
      "- {name: a, kind: device, node: 0}\n- {name: b, kind: device, node: 0}\n"
      "- {name: c, kind: device, node: 0}\n- {name: d, kind: device, node: 0}\n"
      "- {name: n, kind: nic, node: 0}\n- {name: s, kind: switch, node: 0}\nlinks:\n" +
      more);
}

const std::string near_nic =
    "- {from: a, to: n, bandwidth: 1 GB/s, latency: 0.1 us, kind: pcie}\n"
    "- {from: b, to: n, bandwidth: 1 GB/s, latency: 0.1 us, kind: pcie}\n"
    "- {from: c, to: n, bandwidth: 1 GB/s, latency: 0.1 us, kind: pcie}\n"
    "- {from: d, to: n, bandwidth: 1 GB/s, latency: 0.1 us, kind: pcie}\n";
const std::string nvlink_row =
    "- {from: a, to: b, bandwidth: 9 GB/s, latency: 5 us, kind: nvlink}\n"
    "- {from: b, to: c, bandwidth: 9 GB/s, latency: 5 us, kind: nvlink}\n"
    "- {from: c, to: d, bandwidth: 9 GB/s, latency: 5 us, kind: nvlink}\n";

TEST(explicit_graph, inside_a_node_nvlink_goes_first_then_over_one_device) {
  const auto net = node_of_four(nvlink_row + near_nic +
                                "- {from: a, to: s, bandwidth: 1 GB/s, kind: pcie}\n"
                                "- {from: b, to: s, bandwidth: 1 GB/s, kind: pcie}\n"
                                "- {from: c, to: s, bandwidth: 1 GB/s, kind: pcie}\n"
                                "- {from: d, to: s, bandwidth: 1 GB/s, kind: pcie}\n");
  EXPECT_THAT(stops(net, 0, 1), ElementsAre("a", "b"));
  EXPECT_THAT(stops(net, 0, 2), ElementsAre("a", "b", "c"));
  EXPECT_THAT(stops(net, 0, 3), ElementsAre("a", "s", "d"));
}

TEST(explicit_graph, inside_a_node_nothing_passes_through_a_nic) {
  const auto net = node_of_four(nvlink_row + near_nic);
  EXPECT_THAT(stops(net, 0, 3), ElementsAre("a", "b", "c", "d"));
  // Without another way it does: the nodes' devices must reach each other.
  EXPECT_THAT(stops(node_of_four(near_nic), 0, 3), ElementsAre("a", "n", "d"));
}

TEST(explicit_graph, of_two_devices_between_the_wider_is_taken) {
  const auto net =
      node_of_four(near_nic +
                   "- {from: a, to: b, bandwidth: 9 GB/s, latency: 1 us, kind: nvlink}\n"
                   "- {from: b, to: d, bandwidth: 9 GB/s, latency: 1 us, kind: nvlink}\n"
                   "- {from: a, to: c, bandwidth: 18 GB/s, latency: 1 us, kind: nvlink}\n"
                   "- {from: c, to: d, bandwidth: 18 GB/s, latency: 1 us, kind: nvlink}\n");
  EXPECT_THAT(stops(net, 0, 3), ElementsAre("a", "c", "d"));
  EXPECT_THAT(stops(net, 3, 0), ElementsAre("d", "c", "a"));
  EXPECT_EQ(stops(net, 1, 2).size(), 3u);  // over a or d: the pair decides
}

TEST(explicit_graph, nvlink_switches_count_as_nvlink) {
  const auto net =
      node_of_four(near_nic +
                   "- {from: a, to: s, bandwidth: 9 GB/s, latency: 1 us, kind: nvlink}\n"
                   "- {from: b, to: s, bandwidth: 9 GB/s, latency: 1 us, kind: nvlink}\n"
                   "- {from: c, to: s, bandwidth: 9 GB/s, latency: 1 us, kind: nvlink}\n"
                   "- {from: d, to: s, bandwidth: 9 GB/s, latency: 1 us, kind: nvlink}\n");
  EXPECT_THAT(stops(net, 0, 3), ElementsAre("a", "s", "d"));
}

TEST(explicit_graph, equal_paths_share_the_flows) {
  // 8 devices on leaf x, 8 on leaf y, four spines between: 64 flows from x to y.
  std::string text = "vertices: [{name: x, kind: switch}, {name: y, kind: switch}";
  std::string links;
  for (int i = 0; i < 16; ++i) {
    const auto name = fmt::format("d{}", i);
    text += ", {name: " + name + ", kind: device}";
    links += "- {from: " + name + ", to: " + (i < 8 ? "x" : "y") + ", bandwidth: 1 GB/s}\n";
  }
  for (int s = 0; s < 4; ++s) {
    const auto name = fmt::format("s{}", s);
    text += ", {name: " + name + ", kind: switch}";
    links += "- {from: " + name + ", to: x, bandwidth: 1 GB/s}\n";
    links += "- {from: " + name + ", to: y, bandwidth: 1 GB/s}\n";
  }
  const auto net = build(text + "]\nlinks:\n" + links);
  std::map<std::string, int> flows;
  for (int a = 0; a < 8; ++a) {
    for (int b = 8; b < 16; ++b) {
      const auto path = stops(net, a, b);
      ASSERT_EQ(path.size(), 5u);
      EXPECT_EQ(path, stops(net, a, b));
      ++flows[path[2]];
    }
  }
  ASSERT_EQ(flows.size(), 4u);
  for (const auto& [spine, n] : flows) EXPECT_NEAR(n, 16, 10) << spine;
}

TEST(explicit_graph, one_device_needs_no_links) {
  EXPECT_EQ(build("vertices: [{name: a, kind: device}]").devices(), 1);
}

TEST(explicit_graph, refuses_bad_values) {
  const std::string ab = "vertices: [{name: a, kind: device}, {name: b, kind: device}]\n";
  EXPECT_ERROR(build("links: []"), input_error, "g.yaml:1: vertices: missing");
  EXPECT_ERROR(build(ab + "edges: []"), input_error,
               "g.yaml:2: edges: unknown key; expected one of: vertices, links");
  EXPECT_ERROR(build("vertices: [{name: s, kind: switch}]"), input_error,
               "g.yaml:1: vertices: '[...]': expected at least one vertex of kind device");
  EXPECT_ERROR(build("vertices: [{name: s, kind: hub}]"), input_error,
               "g.yaml:1: vertices[0].kind: 'hub': expected one of: device, nic, switch");
  EXPECT_ERROR(build("vertices: [{name: s, kind: nic, size: 1}]"), input_error,
               "g.yaml:1: vertices[0].size: unknown key; expected one of: name, kind, node");
  EXPECT_ERROR(build("vertices: [{name: a, kind: device, node: -1}]"), input_error,
               "g.yaml:1: vertices[0].node: '-1': expected a whole number from 0 to 1048576");
  EXPECT_ERROR(build("vertices: [{name: a, kind: device}, {name: a, kind: nic}]"), input_error,
               "g.yaml:1: vertices[1].name: 'a': expected a name that no other vertex has");
  EXPECT_ERROR(build(ab + "links: [{from: a, to: c, bandwidth: 1 GB/s}]"), input_error,
               "g.yaml:2: links[0].to: 'c': expected the name of a vertex");
  EXPECT_ERROR(build(ab + "links: [{from: a, to: a, bandwidth: 1 GB/s}]"), input_error,
               "g.yaml:2: links[0].to: 'a': expected another vertex than from");
  EXPECT_ERROR(build(ab + "links: [{from: a, to: b, bandwidth: 0 GB/s}]"), input_error,
               "g.yaml:2: links[0].bandwidth: '0 GB/s': expected more than zero");
  EXPECT_ERROR(build(ab + "links: [{from: a, to: b, bandwidth: 1 GB/s, latency: -1 us}]"),
               input_error, "g.yaml:2: links[0].latency: '-1 us': expected a time of zero or more");
  EXPECT_ERROR(
      build(ab + "links: [{from: a, to: b, bandwidth: 1 GB/s, kind: wifi}]"), input_error,
      "g.yaml:2: links[0].kind: 'wifi': expected one of: nvlink, pcie, host-memory, network");
  EXPECT_ERROR(
      build(ab + "links: [{from: a, to: b, cost: 1}]"), input_error,
      "g.yaml:2: links[0].cost: unknown key; expected one of: from, to, bandwidth, latency, "
      "kind, duplex");
}

TEST(explicit_graph, names_a_pair_that_cannot_meet) {
  const std::string ab = "vertices: [{name: a, kind: device}, {name: b, kind: device}]\n";
  EXPECT_ERROR(build(ab), input_error, "g.yaml:1: links: '': no path from a to b");
  EXPECT_ERROR(build(ab + "links: [{from: b, to: a, bandwidth: 1 GB/s, duplex: false}]"),
               input_error, "g.yaml:2: links: '[...]': no path from a to b");
  EXPECT_ERROR(build(ab + "links: [{from: a, to: b, bandwidth: 1 GB/s, duplex: false}]"),
               input_error, "g.yaml:2: links: '[...]': no path from b to a");
}

}  // namespace explicit_graph_test
}  // namespace attnsim
