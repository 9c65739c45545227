#include "model/cluster/fabrics/fabric.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "tests/expect_error.hpp"
#include "tests/model/read_text.hpp"

namespace attnsim {
namespace fabric_test {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

/// Nodes of one device with a NIC of 10 GB/s, 1 us.
std::string singles(int nodes, const std::string& fabric) {
  return fmt::format(
      "name: c\ndevice: ideal\nnodes: {}\ndevices_per_node: 1\n"
      "nics: {{per_node: 1, bandwidth: 10 GB/s, latency: 1 us}}\nfabric: {}\n",
      nodes, fabric);
}

/// Nodes of two devices on an NVSwitch, each with a NIC of 10 GB/s.
std::string doubles(int nodes, const std::string& fabric) {
  return fmt::format(
      "name: c\ndevice: ideal\nnodes: {}\ndevices_per_node: 2\n"
      "node: {{links: nvswitch, bandwidth: 100 GB/s}}\n"
      "nics: {{per_node: 2, bandwidth: 10 GB/s, latency: 1 us}}\nfabric: {}\n",
      nodes, fabric);
}

/// The switches and routers of a route.
std::vector<std::string> switches(const network& net, int from, int to) {
  auto names = stops(net, from, to);
  return {names.begin() + 2, names.end() - 2};
}

/// GB/s that the first half of the devices can send to the second half: the maximum flow, in whole
/// B/s so that it is exact.
double bisection(const network& net) {
  using traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using graph = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS, boost::no_property,
      boost::property<
          boost::edge_capacity_t, std::int64_t,
          boost::property<boost::edge_residual_capacity_t, std::int64_t,
                          boost::property<boost::edge_reverse_t, traits::edge_descriptor>>>>;
  graph g(net.vertices().size() + 2);
  const auto source = net.vertices().size(), sink = source + 1;
  const auto add = [&](std::size_t a, std::size_t b, std::int64_t capacity) {
    const auto forth = add_edge(a, b, g).first, back = add_edge(b, a, g).first;
    put(boost::edge_capacity, g, forth, capacity);
    put(boost::edge_capacity, g, back, 0);
    put(boost::edge_reverse, g, forth, back);
    put(boost::edge_reverse, g, back, forth);
  };
  for (const auto& l : net.links()) add(l.from, l.to, std::llround(l.capacity.value()));
  constexpr std::int64_t no_limit = 10'000'000'000'000'000;
  for (int d = 0; d < net.devices(); ++d) {
    if (d < net.devices() / 2)
      add(source, net.device(d), no_limit);
    else
      add(net.device(d), sink, no_limit);
  }
  return static_cast<double>(boost::push_relabel_max_flow(g, source, sink)) / 1e9;
}

/// Flows on every link out of a switch when every device sends to the one `shift` after it.
std::map<std::string, int> shift_loads(const network& net, int shift) {
  std::map<std::string, int> loads;
  for (int d = 0; d < net.devices(); ++d) {
    for (const auto id : route_of(net, d, (d + shift) % net.devices())) {
      if (net.vertices()[net.links()[id].from].kind == vertex_kind::switch_)
        ++loads[net.name(id, "->")];
    }
  }
  return loads;
}

/// The different loads of links from one tier of switches to another when all send to all.
std::set<int> all_to_all_loads(const network& net, std::string_view from, std::string_view to) {
  std::map<link_id, int> loads;
  for (int a = 0; a < net.devices(); ++a) {
    for (int b = 0; b < net.devices(); ++b) {
      for (const auto id : route_of(net, a, b)) ++loads[id];
    }
  }
  std::set<int> different;
  for (link_id id = 0; id < net.links().size(); ++id) {
    const auto& l = net.links()[id];
    if (net.vertices()[l.from].tier == from && net.vertices()[l.to].tier == to)
      different.insert(loads[id]);
  }
  return different;
}

TEST(star, one_switch_and_only_nics_limit) {
  const auto c = read_text(singles(8, "{kind: star}"));
  EXPECT_EQ(c.network.vertices().size(), 8u + 8 + 1);
  EXPECT_EQ(c.network.links().size(), 2u * (8 + 8));
  EXPECT_THAT(stops(c.network, 3, 5),
              ElementsAre("node3.gpu0", "node3.nic0", "switch0", "node5.nic0", "node5.gpu0"));
  EXPECT_DOUBLE_EQ(latency_of(c.network, 3, 5).value(), 2e-6);
  EXPECT_DOUBLE_EQ(bisection(c.network), 40);
}

TEST(fat_tree, two_levels) {
  // 8 nodes, 4 a leaf: 2 leaves of 4 uplinks to 4 spines.
  const auto c = read_text(singles(8, "{kind: fat-tree, nodes_per_leaf: 4, latency: 0.5 us}"));
  EXPECT_EQ(c.network.vertices().size(), 8u + 8 + 2 + 4);
  EXPECT_EQ(c.network.links().size(), 2u * (8 + 8 + 2 * 4));
  EXPECT_THAT(switches(c.network, 0, 3), ElementsAre("leaf0"));
  const auto across = switches(c.network, 0, 4);
  ASSERT_EQ(across.size(), 3u);
  EXPECT_EQ(across[0], "leaf0");
  EXPECT_THAT(across[1], testing::StartsWith("spine"));
  EXPECT_EQ(across[2], "leaf1");
  EXPECT_DOUBLE_EQ(latency_of(c.network, 0, 4).value(), 3e-6);
  EXPECT_DOUBLE_EQ(bisection(c.network), 40);
}

TEST(fat_tree, oversubscription_of_any_ratio) {
  // A leaf's NICs bring 40 GB/s. At 4: one uplink of 10. At 3: two of 40 / 3 / 2.
  const auto four =
      read_text(singles(8, "{kind: fat-tree, nodes_per_leaf: 4, oversubscription: 4}"));
  EXPECT_EQ(four.network.links().size(), 2u * (8 + 8 + 2));
  EXPECT_DOUBLE_EQ(bisection(four.network), 10);
  const auto three =
      read_text(singles(8, "{kind: fat-tree, nodes_per_leaf: 4, oversubscription: 3}"));
  EXPECT_EQ(three.network.links().size(), 2u * (8 + 8 + 4));
  EXPECT_NEAR(bisection(three.network), 40.0 / 3, 1e-8);
}

TEST(fat_tree, faster_uplinks_are_fewer) {
  const auto c = read_text(singles(8, "{kind: fat-tree, nodes_per_leaf: 4, bandwidth: 20 GB/s}"));
  EXPECT_EQ(c.network.links().size(), 2u * (8 + 8 + 2 * 2));
  EXPECT_DOUBLE_EQ(bisection(c.network), 40);
}

TEST(fat_tree, one_leaf_has_no_spines) {
  const auto c = read_text(singles(3, "{kind: fat-tree, nodes_per_leaf: 4}"));
  EXPECT_EQ(c.network.links().size(), 2u * (3 + 3));
}

TEST(fat_tree, three_levels) {
  // 16 nodes, 2 a leaf, 2 leaves a pod: 8 leaves x 2 uplinks, 4 pods of 2 spines x 2 uplinks, and
  // 2 x 2 cores: cores 0, 1 join the first spines of the pods, 2, 3 the second ones.
  const auto c = read_text(singles(
      16, "{kind: fat-tree, levels: 3, nodes_per_leaf: 2, leaves_per_pod: 2, routing: d-mod-k}"));
  EXPECT_EQ(c.network.vertices().size(), 16u + 16 + 8 + 8 + 4);
  EXPECT_EQ(c.network.links().size(), 2u * (16 + 16 + 16 + 16));
  EXPECT_THAT(switches(c.network, 0, 2), ElementsAre("leaf0", "spine0", "leaf1"));
  // To 15: spine 15 mod 2 = 1 of each pod, core 7 mod 2 = 1 of that spine.
  EXPECT_THAT(switches(c.network, 0, 15),
              ElementsAre("leaf0", "spine1", "core3", "spine7", "leaf7"));
  EXPECT_DOUBLE_EQ(bisection(c.network), 80);
  const auto narrow = read_text(singles(16,
                                        "{kind: fat-tree, levels: 3, nodes_per_leaf: 2, "
                                        "leaves_per_pod: 2, core_oversubscription: 2}"));
  EXPECT_DOUBLE_EQ(bisection(narrow.network), 40);
}

TEST(fat_tree, d_mod_k_loads_are_equal) {
  // 4 leaves of 4: a leaf's 4 senders reach 12 others, 48 flows on 4 uplinks.
  const auto two = read_text(singles(16, "{kind: fat-tree, nodes_per_leaf: 4, routing: d-mod-k}"));
  EXPECT_THAT(all_to_all_loads(two.network, "leaf", "spine"), ElementsAre(12));
  EXPECT_THAT(all_to_all_loads(two.network, "spine", "leaf"), ElementsAre(12));
  for (int shift = 1; shift < 16; ++shift) {
    for (const auto& [name, load] : shift_loads(two.network, shift)) EXPECT_EQ(load, 1) << name;
  }
  // 8 leaves of 2, pods of 2: a leaf's 2 senders reach 14 others over 2 uplinks; a pod's 4 senders
  // reach 12 others over 4 links to cores.
  const auto three = read_text(singles(
      16, "{kind: fat-tree, levels: 3, nodes_per_leaf: 2, leaves_per_pod: 2, routing: d-mod-k}"));
  EXPECT_THAT(all_to_all_loads(three.network, "leaf", "spine"), ElementsAre(14));
  EXPECT_THAT(all_to_all_loads(three.network, "spine", "core"), ElementsAre(12));
  EXPECT_THAT(all_to_all_loads(three.network, "core", "spine"), ElementsAre(12));
  for (int shift = 1; shift < 16; ++shift) {
    for (const auto& [name, load] : shift_loads(three.network, shift)) EXPECT_EQ(load, 1) << name;
  }
}

TEST(fat_tree, ecmp_uses_every_spine) {
  const auto c = read_text(singles(32, "{kind: fat-tree, nodes_per_leaf: 8}"));
  std::set<std::string> spines;
  for (int b = 8; b < 32; ++b) spines.insert(switches(c.network, 0, b)[1]);
  EXPECT_EQ(spines.size(), 8u);
}

TEST(fat_tree, sizes_follow_from_the_radix) {
  // Two levels of radix 4: leaves 2 down and 2 up, at most 4 leaves, 8 nodes. Three: 16 nodes.
  EXPECT_DOUBLE_EQ(bisection(read_text(singles(8, "{kind: fat-tree, radix: 4}")).network), 40);
  EXPECT_ERROR(read_text(singles(9, "{kind: fat-tree, radix: 4}")), input_error,
               "c.yaml:6: fabric.radix: '4': not enough ports: a spine needs 5");
  const auto c = read_text(singles(16, "{kind: fat-tree, levels: 3, radix: 4}"));
  EXPECT_DOUBLE_EQ(bisection(c.network), 80);
  EXPECT_ERROR(read_text(singles(17, "{kind: fat-tree, levels: 3, radix: 4}")), input_error,
               "c.yaml:6: fabric.radix: '4': not enough ports: a core needs 5");
  EXPECT_ERROR(read_text(singles(8, "{kind: fat-tree, radix: 4, nodes_per_leaf: 3}")), input_error,
               "c.yaml:6: fabric.radix: '4': not enough ports: a leaf needs 6");
  EXPECT_ERROR(
      read_text(doubles(8, "{kind: fat-tree, radix: 2}")), input_error,
      "c.yaml:7: fabric.radix: '2': not enough ports: a leaf has 1 for NICs, a node needs 2");
  // Radix 64 at 4 to 1: 51 down, 13 up.
  const auto wide = read_text(singles(102, "{kind: fat-tree, radix: 64, oversubscription: 4}"));
  EXPECT_EQ(wide.network.links().size(), 2u * (102 + 102 + 2 * 13));
}

TEST(fat_tree, refuses_bad_values) {
  const auto read = [](const std::string& keys) {
    read_text(singles(8, "{kind: fat-tree, " + keys + "}"));
  };
  EXPECT_ERROR(read("latency: 1 us"), input_error, "c.yaml:6: fabric.nodes_per_leaf: missing");
  EXPECT_ERROR(read("nodes_per_leaf: 0"), input_error,
               "c.yaml:6: fabric.nodes_per_leaf: '0': expected a whole number from 1 to 65536");
  EXPECT_ERROR(read("nodes_per_leaf: 2, levels: 4"), input_error,
               "c.yaml:6: fabric.levels: '4': expected a whole number from 2 to 3");
  EXPECT_ERROR(read("nodes_per_leaf: 2, levels: 3"), input_error,
               "c.yaml:6: fabric.leaves_per_pod: missing");
  EXPECT_ERROR(read("nodes_per_leaf: 2, leaves_per_pod: 2"), input_error,
               "c.yaml:6: fabric.leaves_per_pod: '2': expected only with 3 levels");
  EXPECT_ERROR(read("nodes_per_leaf: 2, oversubscription: 0.5"), input_error,
               "c.yaml:6: fabric.oversubscription: '0.5': expected a ratio of at least 1");
  EXPECT_ERROR(read("nodes_per_leaf: 2, routing: random"), input_error,
               "c.yaml:6: fabric.routing: 'random': expected one of: ecmp, d-mod-k");
  EXPECT_ERROR(read("nodes_per_leaf: 2, bandwidth: 1 kB/s"), input_error,
               "c.yaml:6: fabric.bandwidth: '1 kB/s': expected at most 65536 uplinks a switch");
  EXPECT_ERROR(
      read("pxn: true"), input_error,
      "c.yaml:6: fabric.pxn: unknown key; expected one of: kind, levels, nodes_per_leaf, "
      "oversubscription, radix, routing, leaves_per_pod, core_oversubscription, bandwidth, "
      "latency");
}

TEST(rail_optimized, pxn_leaves_on_the_rail_of_the_destination) {
  // 4 nodes of 2 devices, 2 nodes a leaf: leaves 0, 1 are rails 0, 1 of nodes 0, 1 and leaves 2, 3
  // those of nodes 2, 3; 2 spines.
  const auto c =
      read_text(doubles(4, "{kind: rail-optimized, nodes_per_leaf: 2, routing: d-mod-k}"));
  EXPECT_EQ(c.network.vertices().size(), 4u * 5 + 4 + 2);
  EXPECT_EQ(c.network.links().size(), 2u * (4 * 4 + 8 + 4 * 2));
  EXPECT_THAT(stops(c.network, 0, 2),
              ElementsAre("node0.gpu0", "node0.nic0", "leaf0", "node1.nic0", "node1.gpu0"));
  EXPECT_THAT(stops(c.network, 0, 3),
              ElementsAre("node0.gpu0", "node0.nvswitch0", "node0.gpu1", "node0.nic1", "leaf1",
                          "node1.nic1", "node1.gpu1"));
  // Node 3 is number 3 along its rail: spine 3 mod 2.
  EXPECT_THAT(stops(c.network, 0, 7),
              ElementsAre("node0.gpu0", "node0.nvswitch0", "node0.gpu1", "node0.nic1", "leaf1",
                          "spine1", "leaf3", "node3.nic1", "node3.gpu1"));
  EXPECT_EQ(transport_of(c.network, route_of(c.network, 0, 3)), link_kind::network);
}

TEST(rail_optimized, without_pxn_other_rails_are_reached_over_spines) {
  const auto c = read_text(
      doubles(4, "{kind: rail-optimized, nodes_per_leaf: 2, routing: d-mod-k, pxn: false}"));
  EXPECT_THAT(stops(c.network, 0, 3), ElementsAre("node0.gpu0", "node0.nic0", "leaf0", "spine1",
                                                  "leaf1", "node1.nic1", "node1.gpu1"));
}

TEST(rail_optimized, d_mod_k_loads_are_equal) {
  // Along a rail 4 nodes of a leaf reach 4 others of the other leaf: 16 flows of either device of a
  // node, over 4 uplinks.
  const auto c =
      read_text(doubles(8, "{kind: rail-optimized, nodes_per_leaf: 4, routing: d-mod-k}"));
  EXPECT_THAT(all_to_all_loads(c.network, "leaf", "spine"), ElementsAre(8));
  EXPECT_THAT(all_to_all_loads(c.network, "spine", "leaf"), ElementsAre(8));
  EXPECT_DOUBLE_EQ(bisection(c.network), 80);
}

TEST(rail_optimized, one_leaf_a_rail_by_default) {
  const auto c = read_text(doubles(5, "{kind: rail-optimized}"));
  // 2 leaves of 5 uplinks to 5 spines.
  EXPECT_EQ(c.network.vertices().size(), 5u * 5 + 2 + 5);
  EXPECT_THAT(stops(c.network, 1, 9),
              ElementsAre("node0.gpu1", "node0.nic1", "leaf1", "node4.nic1", "node4.gpu1"));
}

TEST(rail_optimized, pxn_needs_nvlink) {
  const std::string pcie =
      "name: c\ndevice: ideal\nnodes: 2\ndevices_per_node: 2\n"
      "node: {links: pcie, bandwidth: 20 GB/s, devices_per_switch: 2}\n"
      "nics: {per_node: 2, bandwidth: 10 GB/s}\n";
  const auto c = read_text(pcie + "fabric: {kind: rail-optimized, routing: d-mod-k}");
  EXPECT_THAT(stops(c.network, 0, 3),
              ElementsAre("node0.gpu0", "node0.pcie0", "node0.nic0", "leaf0", "spine1", "leaf1",
                          "node1.nic1", "node1.pcie0", "node1.gpu1"));
  EXPECT_ERROR(
      read_text(pcie + "fabric: {kind: rail-optimized, pxn: true}"), input_error,
      "c.yaml:7: fabric.pxn: 'true': expected false: NVLink does not join all devices of a "
      "node");
  EXPECT_ERROR(read_text(pcie + "fabric: {kind: rail-optimized, rails: 2}"), input_error,
               "c.yaml:7: fabric.rails: unknown key; expected one of: kind, pxn, levels, "
               "nodes_per_leaf, oversubscription, radix, routing, leaves_per_pod, "
               "core_oversubscription, bandwidth, latency");
}

const std::string small_dragonfly =
    "kind: dragonfly, groups: 3, routers_per_group: 2, nodes_per_router: 1";

TEST(dragonfly, minimal_routes) {
  // Group g has routers 2 g and 2 g + 1; ports go to the next group from the first router and to
  // the one after from the second: global links 0-3, 1-4, 2-5.
  const auto c = read_text(singles(6, "{" + small_dragonfly + "}"));
  EXPECT_EQ(c.network.vertices().size(), 6u + 6 + 6);
  EXPECT_EQ(c.network.links().size(), 2u * (6 + 6 + 3 + 3));
  EXPECT_THAT(switches(c.network, 0, 1), ElementsAre("router0", "router1"));
  EXPECT_THAT(switches(c.network, 1, 4), ElementsAre("router1", "router4"));
  EXPECT_THAT(switches(c.network, 0, 5), ElementsAre("router0", "router1", "router4", "router5"));
  EXPECT_THAT(switches(c.network, 3, 5), ElementsAre("router3", "router2", "router5"));
}

TEST(dragonfly, valiant_routes_visit_a_third_group) {
  const auto c = read_text(singles(6, "{" + small_dragonfly + ", routing: valiant}"));
  EXPECT_THAT(switches(c.network, 0, 5), ElementsAre("router0", "router3", "router2", "router5"));
  EXPECT_THAT(switches(c.network, 0, 1), ElementsAre("router0", "router1"));
  const auto wide = read_text(singles(
      16,
      "{kind: dragonfly, groups: 16, routers_per_group: 1, nodes_per_router: 1, global_links: 15, "
      "routing: valiant}"));
  std::set<std::string> visited;
  for (int b = 1; b < 16; ++b) visited.insert(switches(wide.network, 0, b)[1]);
  EXPECT_GT(visited.size(), 6u);
}

TEST(dragonfly, groups_share_parallel_links) {
  // Two groups of 2 routers with 2 global links each: 4 links between the groups.
  const auto c =
      read_text(singles(8,
                        "{kind: dragonfly, groups: 2, routers_per_group: 2, "
                        "nodes_per_router: 2, global_links: 2, global_bandwidth: 5 GB/s, "
                        "latency: 1 us, global_latency: 3 us}"));
  EXPECT_EQ(c.network.links().size(), 2u * (8 + 8 + 2 + 4));
  EXPECT_DOUBLE_EQ(bisection(c.network), 20);
  std::set<link_id> used;
  for (int a = 0; a < 4; ++a) {
    for (int b = 4; b < 8; ++b) {
      for (const auto id : route_of(c.network, a, b)) {
        if (c.network.links()[id].capacity == bandwidth(5e9)) used.insert(id);
      }
    }
  }
  EXPECT_EQ(used.size(), 4u);
}

TEST(dragonfly, more_groups_than_routers) {
  // 16 groups of 4 routers with 4 global links: 15 other groups for 16 ports, one each.
  const auto c = read_text(singles(
      64,
      "{kind: dragonfly, groups: 16, routers_per_group: 4, nodes_per_router: 1, global_links: 4}"));
  EXPECT_EQ(c.network.links().size(), 2u * (64 + 64 + 16 * 6 + 16 * 15 / 2));
  EXPECT_THAT(switches(c.network, 0, 4), ElementsAre("router0", "router7", "router4"));
}

TEST(dragonfly, refuses_bad_values) {
  const auto read = [](int nodes, const std::string& keys) {
    read_text(singles(nodes, "{kind: dragonfly, " + keys + "}"));
  };
  EXPECT_ERROR(read(7, "groups: 3, routers_per_group: 2, nodes_per_router: 1"), input_error,
               "c.yaml:6: fabric.groups: '3': not enough room: 6 nodes fit, the cluster has 7");
  EXPECT_ERROR(
      read(8, "groups: 4, routers_per_group: 2, nodes_per_router: 1, global_links: 1"), input_error,
      "c.yaml:6: fabric.global_links: '1': not enough ports: a group has 2 global links for 3 "
      "other groups");
  EXPECT_ERROR(read(8, "groups: 4, routers_per_group: 2"), input_error,
               "c.yaml:6: fabric.nodes_per_router: missing");
  EXPECT_ERROR(read(8, "groups: 4096, routers_per_group: 4096, nodes_per_router: 1"), input_error,
               "c.yaml:6: fabric.groups: '4096': expected at most 1048576 routers");
  EXPECT_ERROR(read(4, "groups: 2, routers_per_group: 2, nodes_per_router: 1, routing: ugal"),
               input_error, "c.yaml:6: fabric.routing: 'ugal': expected one of: minimal, valiant");
  EXPECT_ERROR(read(4, "chassis: 2"), input_error,
               "c.yaml:6: fabric.chassis: unknown key; expected one of: kind, groups, "
               "routers_per_group, nodes_per_router, global_links, routing, bandwidth, latency, "
               "global_bandwidth, global_latency");
}

TEST(torus, goes_the_shorter_way_dimension_by_dimension) {
  // Router 3 x + y; 3 rings of 4 and 4 rings of 3.
  const auto c = read_text(singles(12, "{kind: torus, dims: [4, 3]}"));
  EXPECT_EQ(c.network.vertices().size(), 12u + 12 + 12);
  EXPECT_EQ(c.network.links().size(), 2u * (12 + 12 + 12 + 12));
  EXPECT_THAT(switches(c.network, 0, 10), ElementsAre("router0", "router9", "router10"));
  EXPECT_THAT(switches(c.network, 2, 3), ElementsAre("router2", "router5", "router3"));
  EXPECT_THAT(switches(c.network, 4, 3), ElementsAre("router4", "router3"));
  EXPECT_EQ(switches(c.network, 0, 6).size(), 3u);  // half way round either way
}

TEST(torus, both_ways_half_way_round_are_used) {
  const auto c = read_text(singles(64, "{kind: torus, dims: [8, 8]}"));
  std::set<std::string> next;
  for (int y = 0; y < 8; ++y) next.insert(switches(c.network, y, 32 + y)[1].substr(6));
  EXPECT_GT(next.size(), 8u / 2);
  bool forth = false, back = false;
  for (int y = 0; y < 8; ++y) {
    const auto second = switches(c.network, y, 32 + y)[1];
    forth |= second == fmt::format("router{}", 8 + y);
    back |= second == fmt::format("router{}", 56 + y);
  }
  EXPECT_TRUE(forth && back);
}

TEST(torus, mesh_two_wide_and_three_dimensions) {
  const auto mesh = read_text(singles(12, "{kind: torus, dims: [4, 3], wrap: false}"));
  EXPECT_EQ(mesh.network.links().size(), 2u * (12 + 12 + 3 * 3 + 4 * 2));
  EXPECT_THAT(switches(mesh.network, 0, 10),
              ElementsAre("router0", "router3", "router6", "router9", "router10"));
  // 2 x 2 x 3: two routers share one link: 6 + 6 + 12.
  const auto cube = read_text(singles(12, "{kind: torus, dims: [2, 2, 3]}"));
  EXPECT_EQ(cube.network.links().size(), 2u * (12 + 12 + 6 + 6 + 12));
  EXPECT_THAT(switches(cube.network, 0, 11),
              ElementsAre("router0", "router6", "router9", "router11"));
}

TEST(torus, bisection) {
  // 4 x 4 cut between x = 1, 2 and 3, 0: 8 links.
  const auto c = read_text(singles(16, "{kind: torus, dims: [4, 4], bandwidth: 1 GB/s}"));
  EXPECT_DOUBLE_EQ(bisection(c.network), 8);
}

TEST(torus, routers_may_stay_empty) {
  const auto c = read_text(singles(3, "{kind: torus, dims: [4, 2], nodes_per_router: 2}"));
  EXPECT_THAT(switches(c.network, 0, 2), ElementsAre("router0", "router1"));
  EXPECT_THAT(switches(c.network, 0, 1), ElementsAre("router0"));
}

TEST(torus, refuses_bad_values) {
  const auto read = [](int nodes, const std::string& keys) {
    read_text(singles(nodes, "{kind: torus, " + keys + "}"));
  };
  EXPECT_ERROR(read(13, "dims: [4, 3]"), input_error,
               "c.yaml:6: fabric.dims: '[...]': not enough room: 12 nodes fit, the cluster has 13");
  EXPECT_ERROR(read(1, "dims: []"), input_error,
               "c.yaml:6: fabric.dims: '[...]': expected 1 to 8 extents");
  EXPECT_ERROR(read(1, "dims: [4, 0]"), input_error,
               "c.yaml:6: fabric.dims[1]: '0': expected extents of at least 1 and at most 1048576 "
               "routers");
  EXPECT_ERROR(
      read(1, "dims: [65536, 65536]"), input_error,
      "c.yaml:6: fabric.dims[0]: '65536': expected extents of at least 1 and at most 1048576 "
      "routers");
  EXPECT_ERROR(read(1, "dims: 4"), input_error, "c.yaml:6: fabric.dims: '4': expected a list");
  EXPECT_ERROR(
      read(1, "twist: 4"), input_error,
      "c.yaml:6: fabric.twist: unknown key; expected one of: kind, dims, nodes_per_router, "
      "wrap, bandwidth, latency");
}

TEST(multi_plane, hashed_messages_take_one_plane) {
  const auto c = read_text(
      singles(8, "{kind: multi-plane, planes: 2, messages: hashed, plane: {kind: star}}"));
  EXPECT_EQ(c.network.links().size(), 2u * (8 + 2 * 8));
  std::set<std::string> used;
  for (int b = 1; b < 8; ++b) {
    const auto path = route_of(c.network, 0, b);
    ASSERT_EQ(path.size(), 4u);
    EXPECT_EQ(c.network.links()[path[1]].capacity, bandwidth(5e9));
    used.insert(switches(c.network, 0, b)[0]);
  }
  EXPECT_THAT(used, UnorderedElementsAre("switch0", "switch1"));
  EXPECT_DOUBLE_EQ(bisection(c.network), 40);
}

TEST(multi_plane, split_messages_see_one_plane_of_the_summed_bandwidth) {
  // Uplinks of 2.5 GB/s on both planes are one of 5 GB/s; a leaf of 4 NICs of 10 GB/s needs 8.
  const auto c = read_text(singles(8,
                                   "{kind: multi-plane, planes: 2, messages: split, plane: {kind: "
                                   "fat-tree, nodes_per_leaf: 4, bandwidth: 2.5 GB/s}}"));
  EXPECT_EQ(c.network.links().size(), 2u * (8 + 8 + 2 * 8));
  EXPECT_DOUBLE_EQ(bisection(c.network), 40);
}

TEST(multi_plane, refuses_bad_values) {
  const auto read = [](const std::string& keys) {
    read_text(singles(8, "{kind: multi-plane, " + keys + "}"));
  };
  EXPECT_ERROR(read("planes: 0"), input_error,
               "c.yaml:6: fabric.planes: '0': expected a whole number from 1 to 64");
  EXPECT_ERROR(read("planes: 2, messages: sprayed, plane: {kind: star}"), input_error,
               "c.yaml:6: fabric.messages: 'sprayed': expected one of: hashed, split");
  EXPECT_ERROR(read("planes: 2, messages: split"), input_error, "c.yaml:6: fabric.plane: missing");
  EXPECT_ERROR(read("planes: 2, messages: split, plane: {kind: none}"), input_error,
               "c.yaml:6: fabric.plane.kind: 'none': expected the fabric of a plane");
  EXPECT_ERROR(
      read("count: 2"), input_error,
      "c.yaml:6: fabric.count: unknown key; expected one of: kind, planes, messages, plane");
}

TEST(no_fabric, joins_the_devices_of_one_node) {
  const std::string node =
      "name: c\ndevice: ideal\ndevices_per_node: 72\nnode: {links: nvswitch, bandwidth: 900 GB/s}\n"
      "fabric: {kind: none}\nnodes: ";
  const auto c = read_text(node + "1");
  EXPECT_EQ(c.network.vertices().size(), 73u);
  EXPECT_EQ(c.network.links().size(), 144u);
  EXPECT_ERROR(read_text(node + "2"), input_error,
               "c.yaml:5: fabric.kind: 'none': expected a fabric that joins the 2 nodes");
}

TEST(build_fabric, refuses_unknown_kinds) {
  EXPECT_ERROR(read_text(singles(2, "{kind: mesh}")), input_error,
               "c.yaml:6: fabric.kind: 'mesh': expected one of: star, fat-tree, rail-optimized, "
               "dragonfly, torus, multi-plane, graph, none");
  EXPECT_ERROR(read_text(singles(2, "{kind: star, bandwidth: 1 GB/s}")), input_error,
               "c.yaml:6: fabric.bandwidth: unknown key; expected one of: kind");
}

TEST(fabric_graph, routes_along_the_given_links) {
  // Two nodes on leaf l, one on leaf m, a cable between.
  const std::string head =
      "name: c\ndevice: ideal\nnodes: 3\ndevices_per_node: 1\n"
      "nics: {per_node: 1, bandwidth: 10 GB/s}\n";
  const std::string switches =
      "fabric: {kind: graph, graph: {vertices: [{name: l, kind: switch}, {name: m, kind: switch}], "
      "links: [{from: l, to: m, bandwidth: 5 GB/s}, {from: node0.nic0, to: l, bandwidth: 10 GB/s}, "
      "{from: node1.nic0, to: l, bandwidth: 10 GB/s}";
  const auto c = read_text(head + switches + ", {from: node2.nic0, to: m, bandwidth: 10 GB/s}]}}");
  const std::vector<std::string> expected = {"node0.gpu0", "node0.nic0", "l",
                                             "m",          "node2.nic0", "node2.gpu0"};
  EXPECT_EQ(stops(c.network, 0, 2), expected);
  EXPECT_EQ(stops(c.network, 0, 1).size(), 5u);
  EXPECT_ERROR(read_text(head + switches + "]}}"), input_error,
               "c.yaml:6: fabric.graph.links: '[...]': no path from node0.nic0 to node2.nic0");
}

}  // namespace fabric_test
}  // namespace attnsim
