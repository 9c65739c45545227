// Congested answers by hand: what a fluid network with max-min fair sharing and cut-through must give
// where simulators are known to be wrong.
#include <gmock/gmock.h>

#include <numeric>

#include "model/config.hpp"
#include "sim/collectives.hpp"
#include "sim/phases.hpp"
#include "sim/simulator.hpp"
#include "tests/ring_exchanges.hpp"

namespace attnsim {
namespace congestion_test {

constexpr double mib = 1 << 20;
constexpr double block = 64 * mib;
constexpr double rate = 50e9;

cluster from_yaml(const std::string& rest) {
  return read_cluster(config_node::parse_text("name: test\ndevice: ideal\n" + rest, "test.yaml"));
}

/// Devices on NICs of 50 GB/s; every link takes 1 us.
cluster nodes_of_one(int nodes, const std::string& fabric, const std::string& extra = "") {
  return from_yaml("nodes: " + std::to_string(nodes) +
                   "\ndevices_per_node: 1\nnode: {links: none}\n"
                   "nics: {per_node: 1, bandwidth: 50 GB/s, latency: 1 us}\nfabric: " +
                   fabric + "\n" + extra);
}

/// Messages of 64 MiB, all sent at once.
std::vector<double> sent_at_once(const cluster& c, const std::vector<std::pair<int, int>>& ends) {
  std::vector<message> messages;
  for (const auto& [from, to] : ends) messages.push_back({from, to, block, {}, 1, {}});
  std::vector<double> times;
  for (const auto t : arrivals(c, messages)) times.push_back(t.value());
  return times;
}

double simulated(const cluster& c, schedule s, int ranks) {
  const placed_schedule i(c, exchange_problem(ranks, block), {.tokens = token_layout::contiguous},
                          std::move(s));
  return simulate(i).duration().value();
}

auto near(double expected) {
  return testing::DoubleNear(expected, 1e-11);
}

// S / B + two links of 1 us, not 2 S / B: the switch passes bytes on while they come in.
TEST(congestion, a_large_transfer_through_a_switch_is_not_doubled) {
  const auto c = nodes_of_one(2, "{kind: star}");
  EXPECT_THAT(sent_at_once(c, {{0, 1}}), testing::ElementsAre(near(block / rate + 2e-6)));
  EXPECT_THAT(simulated(c, ring_exchanges(2, 1, false), 2), near(block / rate + 2e-6));
}

// 8 x 8 devices, all joined directly by 50 GiB/s and 0.5 us. Each sends 64 MiB along its row and
// 64 MiB along its column at once, on different links: 7 steps of 1.25 ms + 0.5 us are 8.754 ms. One
// after the other it would be 17.5.
TEST(congestion, two_exchanges_of_one_rank_run_at_once) {
  constexpr double link = 50.0 * 1024 * 1024 * 1024;
  const auto c = from_yaml("nodes: 1\ndevices_per_node: 64\nnode: {links: full-mesh, bandwidth: " +
                           std::to_string(63 * link / 1e9) + " GB/s, latency: 0.5 us}\n");
  const double time = simulated(c, ring_exchanges(8, 8, false), 64);
  EXPECT_NEAR(time, 7 * (block / link + 0.5e-6), 1e-9);
  EXPECT_NEAR(time, 8.754e-3, 1e-6);
}

// The same on a star: both leave by the same link, 2 S / B a step.
TEST(congestion, two_exchanges_over_one_link_share_it) {
  const auto c = nodes_of_one(64, "{kind: star}");
  EXPECT_THAT(simulated(c, ring_exchanges(8, 8, false), 64), near(7 * (2 * block / rate + 2e-6)));
}

// 4 leaves of 4 hosts, 4:1: one uplink of 50 GB/s a leaf. All to all, 64 MiB a pair: of a leaf's
// messages 4 x 12 go up, which takes 48 S / B and four links of 1 us. Each of them gets B / 48, so
// the 12 of a host leave three quarters of its link to the 3 within the leaf, B / 4 each. These start
// 2 us earlier, when they have B / 3 each: they end at t with 2 us B / 3 + (t - 4 us) B / 4 = S.
TEST(congestion, all_to_all_through_an_oversubscribed_core) {
  const auto c =
      nodes_of_one(16, "{kind: fat-tree, nodes_per_leaf: 4, oversubscription: 4, latency: 1 us}");
  std::vector<std::pair<int, int>> ends;
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < 16; ++b) {
      if (a != b) ends.emplace_back(a, b);
    }
  }
  const auto times = sent_at_once(c, ends);
  EXPECT_THAT(*std::max_element(times.begin(), times.end()), near(48 * block / rate + 4e-6));
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].first / 4 == ends[i].second / 4) {
      EXPECT_THAT(times[i], near(4 * block / rate + 4e-6 - 4 * 2e-6 / 3));
    }
  }
}

// Two nodes of four devices, two of which share each NIC of 50 GB/s: two messages from NIC 0 take
// twice as long, one from each NIC does not.
TEST(congestion, devices_share_a_nic) {
  const auto c = from_yaml(
      "nodes: 2\ndevices_per_node: 4\nnode: {links: nvswitch, bandwidth: 450 GB/s}\n"
      "nics: {per_node: 2, bandwidth: 50 GB/s, attach: shared}\nfabric: {kind: star}\n");
  EXPECT_THAT(sent_at_once(c, {{0, 4}, {1, 5}}), testing::Each(near(2 * block / rate)));
  EXPECT_THAT(sent_at_once(c, {{0, 4}, {2, 6}}), testing::Each(near(block / rate)));
}

// Hosts of leaf 0 to leaf 1, the spine chosen by destination: four spines, one message each. The
// cable to spine 1 at a quarter of its speed holds up the message to host 5 only.
TEST(congestion, a_degraded_cable_holds_up_what_crosses_it) {
  const auto c =
      nodes_of_one(16, "{kind: fat-tree, nodes_per_leaf: 4, latency: 1 us, routing: d-mod-k}",
                   "slow_links: {leaf0->spine1: 0.25}\n");
  const double full = block / rate + 4e-6, quarter = 4 * block / rate + 4e-6;
  EXPECT_THAT(sent_at_once(c, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}),
              testing::ElementsAre(near(full), near(quarter), near(full), near(full)));
}

// Two leaves of 8 hosts, 8 spines, hashed: messages meet on a spine while others lie idle. With m on
// the fullest uplink, m S / B. (Both cables of a spine carry the same messages.)
TEST(congestion, hashed_paths_collide) {
  const auto c = nodes_of_one(16, "{kind: fat-tree, nodes_per_leaf: 8, latency: 1 us}");
  std::map<link_id, int> on_link;
  int fullest = 0;
  std::vector<std::pair<int, int>> ends;
  for (int host = 0; host < 8; ++host) {
    std::vector<link_id> path;
    c.network.route(host, host + 8, path);
    for (const auto l : path) fullest = std::max(fullest, ++on_link[l]);
    ends.emplace_back(host, host + 8);
  }
  ASSERT_GT(fullest, 1);
  const auto times = sent_at_once(c, ends);
  EXPECT_THAT(*std::max_element(times.begin(), times.end()), near(fullest * block / rate + 4e-6));
}

// Rails. Device 0 sends to device 1 of the other node by way of its neighbour's NIC, which is on the
// receiver's rail (PXN): no spine. It then shares NIC 1 with the neighbour's own message.
TEST(congestion, messages_to_another_rail_leave_by_its_nic) {
  const auto c = from_yaml(
      "nodes: 2\ndevices_per_node: 2\nnode: {links: nvswitch, bandwidth: 450 GB/s}\n"
      "nics: {per_node: 2, bandwidth: 50 GB/s}\n"
      "fabric: {kind: rail-optimized, nodes_per_leaf: 2}\n");
  std::vector<link_id> path;
  c.network.route(0, 3, path);
  std::vector<std::string> names;
  for (const auto l : path) names.push_back(c.network.name(l, "->"));
  EXPECT_THAT(names, testing::Contains("node0.nic1->leaf1"));
  EXPECT_THAT(names, testing::Not(testing::Contains(testing::HasSubstr("spine"))));
  EXPECT_THAT(sent_at_once(c, {{0, 3}}), testing::Each(near(block / rate)));
  EXPECT_THAT(sent_at_once(c, {{0, 3}, {1, 3}}), testing::Each(near(2 * block / rate)));
  EXPECT_THAT(sent_at_once(c, {{0, 3}, {1, 2}}), testing::Each(near(block / rate)));
}

// Each stream's first operation needs one of the other's: nothing can start.
TEST(congestion, a_schedule_that_cannot_progress_is_reported) {
  const auto c = nodes_of_one(2, "{kind: star}");
  auto broken = ring_exchanges(2, 1, true);
  broken.name = "broken";
  broken.program[0].needs = {1, 0};
  broken.program[1].needs = {0, 1};
  EXPECT_THAT([&] { simulated(c, broken, 2); },
              testing::ThrowsMessage<std::logic_error>(
                  "broken cannot progress: rank 0 waits before operation 1 (attention) for 1 "
                  "operations of stream columns; rank 0 waits before operation 0 (shift) for 1 "
                  "operations of stream compute;"));
}

placed_schedule ring_of_four(const cluster& c) {
  return {c,
          exchange_problem(4, block),
          {.tokens = token_layout::contiguous},
          ring_exchanges(4, 1, false)};
}

// One step: 2 us of latency, then 64 MiB at full rate for 1342177.28 ns, and again.
TEST(congestion, the_load_of_a_link_over_time) {
  const auto c = nodes_of_one(4, "{kind: star}");
  const auto i = ring_of_four(c);
  const auto t = simulate(i, {.record = true, .record_links = true});
  const auto& samples = t.links.front().samples;
  const double step = block / rate + 2e-6;
  ASSERT_EQ(samples.size(), 7u);
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const auto done = static_cast<double>(k / 2);
    EXPECT_NEAR(samples[k].since.value(),
                k == 0  ? 0
                : k % 2 ? done * step + 2e-6
                        : done * step,
                1e-11);
    EXPECT_EQ(samples[k].rate, k % 2 ? rate : 0);
  }
  EXPECT_NEAR(bytes_between(samples, seconds(0), seconds(step)), block, 1);
  EXPECT_NEAR(bytes_between(samples, seconds(0), t.duration()), 3 * block, 3);
  EXPECT_DOUBLE_EQ(t.ranks.front().bytes_sent, 3 * block);
}

// The cable into host 2 at half speed: rank 1's sends are held up by it, all of the time but 2 us a
// step. Rank 3's first message meets only full cables.
TEST(congestion, the_bottleneck_of_each_phase) {
  const auto c = nodes_of_one(4, "{kind: star}", "slow_links: {switch0->node2.nic0: 0.5}\n");
  const auto i = ring_of_four(c);
  const auto t = simulate(i, {.record = true, .record_links = true});
  const auto held_up = phases(i, t, 1);
  ASSERT_EQ(held_up.size(), 3u);
  const double step = block / (rate / 2) + 2e-6;
  for (const auto& p : held_up) {
    EXPECT_EQ(c.network.name(p.bottleneck, "->"), "switch0->node2.nic0");
    EXPECT_NEAR(p.utilisation, 1 - 2e-6 / step, 1e-9);
  }
  const auto free = phases(i, t, 0).front();
  EXPECT_EQ(free.start, seconds(0));
  EXPECT_NEAR(free.end.value(), block / rate + 2e-6, 1e-11);
  EXPECT_NEAR(free.utilisation, 1 - 2e-6 / free.end.value(), 1e-9);
}

TEST(congestion, phases_need_a_recorded_run) {
  const auto c = nodes_of_one(4, "{kind: star}");
  const auto i = ring_of_four(c);
  EXPECT_THAT([&] { phases(i, simulate(i, {.record = true}), 0); },
              testing::ThrowsMessage<std::invalid_argument>(
                  "phases: expected a run with intervals and links recorded"));
}

}  // namespace congestion_test
}  // namespace attnsim
