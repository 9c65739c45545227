// Collectives in the fast form (model/cost/collective.hpp) against every message of every step.
#include "sim/collectives.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "model/cluster/trees.hpp"
#include "model/error.hpp"

namespace attnsim {
namespace collectives_test {

using enum collective_kind;
using enum collective_algorithm;

cluster from_yaml(const std::string& rest, const std::string& device = "ideal") {
  return read_cluster(
      config_node::parse_text("name: test\ndevice: " + device + "\n" + rest, "test"));
}

cluster star(int nodes) {
  return from_yaml(
      "nodes: " + std::to_string(nodes) +
      "\ndevices_per_node: 1\nnode: {links: none}\n"
      "nics: {per_node: 1, bandwidth: 50 GB/s, latency: 1 us}\nfabric: {kind: star}\n");
}

cluster one_node(const std::string& links, const std::string& bandwidth) {
  return from_yaml("nodes: 1\ndevices_per_node: 8\nnode: {links: " + links +
                   ", bandwidth: " + bandwidth + ", latency: 0.5 us}\n");
}

cluster fat_tree(const std::string& oversubscription) {
  return from_yaml(
      "nodes: 16\ndevices_per_node: 1\nnode: {links: none}\n"
      "nics: {per_node: 1, bandwidth: 50 GB/s, latency: 1 us}\n"
      "fabric: {kind: fat-tree, nodes_per_leaf: 4, latency: 1 us, routing: d-mod-k, "
      "oversubscription: " +
      oversubscription + "}\n");
}

cluster rails(const std::string& device) {
  return from_yaml(
      "nodes: 4\ndevices_per_node: 8\n"
      "node: {links: nvswitch, bandwidth: 450 GB/s, latency: 0.5 us}\n"
      "nics: {per_node: 8, bandwidth: 50 GB/s, latency: 0.6 us, attach: one-per-device}\n"
      "fabric: {kind: rail-optimized, nodes_per_leaf: 2, routing: d-mod-k, latency: 0.3 us}\n",
      device);
}

/// Steps and messages are counted without what their sizes add, alike for any transfer and all-reduce.
cluster without_ramps(cluster c) {
  for (auto& t : c.device.transports) {
    t.ramp = t.one_way_ramp = t.collective_ramp = t.all_reduce_ramp = {};
    t.all_reduce_efficiency = t.collective_efficiency;
    t.pair = nullptr;
  }
  return c;
}

std::vector<int> all_of(const cluster& c) {
  std::vector<int> devices(static_cast<std::size_t>(c.devices()));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

double fast(const cluster& c, const collective& what, double bytes) {
  return time_alone(c, stages(c, what, all_of(c), bytes)).value();
}

double by_steps(const cluster& c, const collective& what, double bytes, int pieces = 1) {
  return duration(c, expand(c, what, all_of(c), bytes, pieces)).value();
}

constexpr double gigabyte = 1e9;

// 8 hosts, 1 GB: 7 steps of 125 MB at 50 GB/s, and two links of 1 us a step: 7 x 2.502 ms. An
// all-reduce takes 14 of them.
TEST(collectives, ring_on_a_star) {
  const auto c = star(8);
  EXPECT_NEAR(by_steps(c, {all_gather, ring}, gigabyte), 7 * 2.502e-3, 1e-10);
  EXPECT_NEAR(by_steps(c, {reduce_scatter, ring}, gigabyte), 7 * 2.502e-3, 1e-10);
  EXPECT_NEAR(by_steps(c, {all_reduce, ring}, gigabyte), 14 * 2.502e-3, 1e-10);
}

// Every host sends 7 x 125 MB through its link at once: 17.5 ms, and 2 us.
TEST(collectives, all_to_all_on_a_star) {
  EXPECT_NEAR(by_steps(star(8), {all_to_all, pairs}, gigabyte), 17.502e-3, 1e-10);
}

// Full mesh of 8, seven links of 50 GB/s a device: rings of stride 1, 3, 5, 7 use four links of each device at
// once, 7 steps of 31.25 MB. All-to-all uses all seven, 125 MB on each.
TEST(collectives, on_a_full_mesh) {
  const auto c = one_node("full-mesh", "350 GB/s");
  EXPECT_NEAR(by_steps(c, {all_gather, ring}, gigabyte), 7 * (31.25e6 / 50e9 + 0.5e-6), 1e-10);
  EXPECT_NEAR(by_steps(c, {all_to_all, pairs}, gigabyte), 125e6 / 50e9 + 0.5e-6, 1e-10);
}

// 4 leaves of 4 hosts, 4:1, so one uplink of 50 GB/s a leaf. Of the 16 x 62.5 MB that a host has,
// 12 leave the leaf: 4 x 12 x 62.5 MB = 3 GB through 50 GB/s: 60 ms, and four links of 1 us.
TEST(collectives, all_to_all_through_an_oversubscribed_core) {
  EXPECT_NEAR(by_steps(fat_tree("4"), {all_to_all, pairs}, gigabyte), 60.004e-3, 1e-10);
  EXPECT_NEAR(fast(fat_tree("4"), {all_to_all, pairs}, gigabyte), 60.004e-3, 1e-10);
}

// 4 nodes of 8 on rails. Flat: 8 channels, and each NIC carries one of them between nodes: 31 steps
// of 1 GB / 32 / 8 at 50 GB/s. The slowest hop: device, NVSwitch, device, NIC, leaf, spine, leaf,
// NIC, device. Hierarchical: the NICs carry 3 steps of 1 GB / 32 each, then NVLink 7 of 1 GB / 8.
TEST(collectives, hierarchical_on_rails) {
  const auto c = rails("ideal");
  const double along = 3 * (gigabyte / 32 / 50e9), within = 7 * (gigabyte / 8 / 450e9);
  const double flat = 31 * (gigabyte / 32 / 8 / 50e9);
  EXPECT_NEAR(by_steps(c, {all_gather, hierarchical}, gigabyte), along + within, 20e-6);
  EXPECT_NEAR(by_steps(c, {all_gather, ring}, gigabyte), flat, 80e-6);
}

struct named_cluster {
  std::string name;
  cluster machine;
};

std::vector<named_cluster> clusters() {
  std::vector<named_cluster> list;
  list.push_back({"star", star(8)});
  list.push_back({"star of 5", star(5)});
  list.push_back({"nvswitch", one_node("nvswitch", "450 GB/s")});
  list.push_back({"full mesh", one_node("full-mesh", "350 GB/s")});
  list.push_back({"fat tree", fat_tree("1")});
  list.push_back({"fat tree 4:1", fat_tree("4")});
  list.push_back({"rails", rails("ideal")});
  list.push_back({"rails of h100", without_ramps(rails("h100-sxm5"))});
  return list;
}

// A piece passes all hops but one. Where they have one bandwidth, both forms are the same to the picosecond a step. Inside the nodes
// of rails bytes pass faster than the one flow has them, whose pace is that of the NICs.
TEST(collectives, rings_take_as_long_by_steps_as_in_one_flow) {
  for (const auto& [name, c] : clusters()) {
    for (const double bytes : {1e6, gigabyte}) {
      for (const collective& what : {collective{all_gather, ring},
                                     {reduce_scatter, ring},
                                     {all_reduce, ring},
                                     {all_gather, hierarchical},
                                     {reduce_scatter, hierarchical},
                                     {all_reduce, hierarchical}}) {
        const double steps = by_steps(c, what, bytes), flow = fast(c, what, bytes);
        const double more = name.starts_with("rails") ? 0.05 : 1e-5;
        EXPECT_GE(flow, steps * (1 - 1e-5)) << name << " " << bytes;
        EXPECT_LE(flow, steps * (1 + more)) << name << " " << bytes;
      }
    }
  }
}

// At once, and alike: a link's last byte is that of its pairs together. The fast form adds the
// latency of the longest path to the time of the fullest link, which need not be on it: at most the
// difference of two paths' latencies a stage, 2 us here.
TEST(collectives, all_to_alls_take_as_long_by_messages_but_for_latency) {
  for (const auto& [name, c] : clusters()) {
    for (const double bytes : {1e6, gigabyte}) {
      for (const auto algorithm : {pairs, hierarchical}) {
        const double exact = by_steps(c, {all_to_all, algorithm}, bytes);
        const double sum = fast(c, {all_to_all, algorithm}, bytes);
        EXPECT_GT(sum, exact - 1e-9) << name << " " << bytes;
        EXPECT_LT(sum, exact + 2.1e-6) << name << " " << bytes;
      }
    }
  }
}

// A tree of depth d in p pieces: the fast form is the time of the fullest link, which a pipe that
// never runs dry would reach. Filling and draining it costs 2 d pieces more, and each piece of an
// edge waits for its forerunner's latency.
TEST(collectives, trees_take_as_long_but_for_filling_the_pipe) {
  constexpr int pieces = 256;
  for (const auto& [name, c] : clusters()) {
    const double sum = fast(c, {all_reduce, tree}, gigabyte);
    const double steps = by_steps(c, {all_reduce, tree}, gigabyte, pieces);
    EXPECT_GT(steps, 0.999 * sum) << name;
    EXPECT_LT(steps, 1.10 * sum) << name;
  }
}

// In one piece the buffer goes up and down one edge after the other. Star of 2: the trees 1 -> 0 and
// 0 -> 1 carry half each, at once; 2 x (500 MB / 50 GB/s + 2 us).
TEST(collectives, a_tree_in_one_piece) {
  EXPECT_NEAR(by_steps(star(2), {all_reduce, tree}, gigabyte), 2 * 10.002e-3, 1e-9);
}

// The halves of every device's buffer are reduced on two trees; nobody is inner in both.
TEST(collectives, whoever_is_inner_in_one_tree_is_a_leaf_in_the_other) {
  for (const int n : {2, 4, 8, 16}) {
    const auto c = star(n);
    const auto trees = tree_channels(c.network, all_of(c));
    ASSERT_EQ(trees.size(), 2u);
    for (int device = 0; device < n; ++device) {
      int inner_in = 0;
      for (const auto& t : trees) {
        inner_in += std::any_of(t.edges.begin(), t.edges.end(),
                                [&](const auto& e) { return e.parent == device; });
      }
      EXPECT_LE(inner_in, 1) << device << " of " << n;
    }
  }
}

TEST(collectives, trees_reach_every_device_once) {
  for (const auto& [name, c] : clusters()) {
    for (const auto& t : tree_channels(c.network, all_of(c))) {
      std::vector<int> children;
      for (const auto& e : t.edges) children.push_back(e.child);
      std::sort(children.begin(), children.end());
      EXPECT_EQ(std::unique(children.begin(), children.end()), children.end()) << name;
      EXPECT_EQ(children.size() + 1, all_of(c).size()) << name;
    }
  }
}

// A straggling link breaks what is alike: 50 GB/s but for host 3's, 25 GB/s. The ring goes at its
// pace, 7 x (125 MB / 25 GB/s + 2 us); by steps a piece flies while the next is sent, but the first and the last.
TEST(collectives, a_degraded_link_sets_the_pace_of_the_ring) {
  auto c = star(8);
  c.network.degrade(c.network.find_links("node3.nic0->switch0").front(), 0.5);
  EXPECT_NEAR(by_steps(c, {all_gather, ring}, gigabyte), 7 * 5e-3 + 2 * 2e-6, 1e-9);
  EXPECT_NEAR(fast(c, {all_gather, ring}, gigabyte), 7 * 5.002e-3, 1e-9);
}

TEST(collectives, messages_that_wait_for_each_other_are_reported) {
  const std::vector<message> circle{{.from = 0, .to = 1, .bytes = 1, .latency = {}, .after = {1}},
                                    {.from = 1, .to = 0, .bytes = 1, .latency = {}, .after = {0}}};
  EXPECT_THAT([&] { duration(star(2), circle); },
              testing::ThrowsMessage<std::logic_error>(
                  "message 0 from device 0 to 1 waits for messages that never arrive: 1"));
}

TEST(collectives, unequal_nodes_have_no_hierarchy) {
  const auto c = rails("ideal");
  EXPECT_THAT(
      [&] {
        stages(c, {all_gather, hierarchical}, {0, 1, 8}, 1);
      },
      testing::ThrowsMessage<infeasible>(
          "hierarchical collective: nodes take part with 2 and 1 devices; feasible: equal "
          "numbers"));
}

}  // namespace collectives_test
}  // namespace attnsim
