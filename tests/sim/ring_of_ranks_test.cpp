// Ranks of a ring, run row by row, against every rank by itself.
#include "sim/ring_of_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "model/schedule/algorithms/schedules.hpp"
#include "sim/ring_layout.hpp"

namespace attnsim {
namespace ring_of_ranks_test {

cluster pods(int nodes, const std::string& extra = "",
             const std::string& fabric = "rail-optimized") {
  return read_cluster(config_node::parse_text(
      "name: pods\ndevice: h100-sxm5\nnodes: " + std::to_string(nodes) +
          "\ndevices_per_node: 4\nnode: {links: nvswitch, bandwidth: 450 GB/s, latency: 1 us}\n"
          "nics: {per_node: 4, bandwidth: 400 Gb/s, latency: 2 us, attach: one-per-device}\n"
          "fabric: {kind: " +
          fabric + "}\n" + extra,
      "pods.yaml"));
}

/// The leaf switch of a node's first NIC.
std::string leaf_of(int nodes, const std::string& fabric, int node) {
  const auto c = pods(nodes, "", fabric);
  const auto nic = "node" + std::to_string(node) + ".nic0";
  for (link_id l = 0; l < c.network.links().size(); ++l) {
    const auto& link = c.network.links()[l];
    if (c.network.name(link.from) == nic && c.network.name(link.to).starts_with("leaf"))
      return c.network.name(link.to);
  }
  return "";
}

attention causal(int ranks, std::int64_t tokens_of_rank) {
  return {.heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .sequence = ranks * tokens_of_rank,
          .mask = mask_kind::causal};
}

/// Every rank's end, compute time and bytes, and what every link carried.
void expect_as_by_itself(const placed_schedule& i, const timeline& fast) {
  const auto exact = simulate(i, {.merge_symmetric = false});
  ASSERT_EQ(fast.class_of.size(), exact.class_of.size());
  for (std::size_t rank = 0; rank < exact.class_of.size(); ++rank) {
    const auto& of = fast.ranks[static_cast<std::size_t>(fast.class_of[rank])];
    const auto& by_itself = exact.ranks[static_cast<std::size_t>(exact.class_of[rank])];
    ASSERT_EQ(of.end.value(), by_itself.end.value())
        << "rank " << rank << " differs by " << of.end.value() - by_itself.end.value();
    ASSERT_EQ(of.compute.value(), by_itself.compute.value())
        << "rank " << rank << " differs by " << of.compute.value() - by_itself.compute.value();
    ASSERT_EQ(of.bytes_sent, by_itself.bytes_sent) << "rank " << rank;
  }
  ASSERT_EQ(fast.load_of.size(), exact.load_of.size());
  for (std::size_t l = 0; l < exact.load_of.size(); ++l) {
    ASSERT_EQ(fast.load_of[l] < 0, exact.load_of[l] < 0) << "link " << l;
    if (exact.load_of[l] < 0) continue;
    ASSERT_DOUBLE_EQ(fast.links[static_cast<std::size_t>(fast.load_of[l])].bytes,
                     exact.links[static_cast<std::size_t>(exact.load_of[l])].bytes);
  }
}

void expect_exact(const cluster& c, int ranks, std::int64_t tokens, const strategy& s,
                  pass_kind pass) {
  SCOPED_TRACE(s.schedule + ", " + std::to_string(ranks) + " ranks of " + std::to_string(tokens) +
               " " + std::string(name_of(s.tokens)) + " tokens, " + std::string(name_of(pass)));
  const auto a = causal(ranks, tokens);
  const placed_schedule i(c, a, complete(s, a, ranks), pass);
  const auto fast = simulate_ring(i, {});
  ASSERT_TRUE(fast);
  expect_as_by_itself(i, *fast);
}

// Of few tokens a rank waits for data, of many it computes.
TEST(ring_of_ranks, as_every_rank_by_itself) {
  for (const int nodes : {8, 10, 16, 33}) {
    const auto c = pods(nodes);
    for (const std::int64_t tokens : {64, 1024, 8192}) {
      for (const auto layout : {token_layout::zigzag, token_layout::striped}) {
        for (const auto pass : {pass_kind::forward, pass_kind::backward})
          expect_exact(c, 4 * nodes, tokens, {.schedule = "ring", .tokens = layout}, pass);
      }
    }
  }
}

// Minutes: --gtest_also_run_disabled_tests.
TEST(ring_of_ranks, DISABLED_every_size_up_to_1024) {
  for (int nodes = 8; nodes <= 256; ++nodes) {
    const auto c = pods(nodes);
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      for (const std::int64_t tokens : {256, 4096})
        expect_exact(c, 4 * nodes, tokens, {.schedule = "ring"}, pass);
    }
  }
}

TEST(ring_of_ranks, a_straggler_and_a_slow_link_delay_whom_they_delay) {
  for (const auto* extra :
       {"slow_devices: {21: 0.5}\n", "slow_links: {node3.nic0->leaf0: 0.5}\n"}) {
    const auto c = pods(32, extra);
    for (const std::int64_t tokens : {256, 4096})
      expect_exact(c, 128, tokens, {.schedule = "ring"}, pass_kind::forward);
  }
}

constexpr auto leaves_of_17 = "rail-optimized, nodes_per_leaf: 17, latency: 0.3 us";

int blocks_of_ring(const cluster& c, int ranks) {
  const auto a = causal(ranks, 1024);
  const placed_schedule i(c, a, complete({.schedule = "ring"}, a, ranks), pass_kind::forward);
  const auto ring = find_ring(i, stream_programs(i));
  return ring ? ring->blocks() : 0;
}

// What ranks do repeats itself from one leaf switch to the next.
TEST(ring_of_ranks, blocks_of_cells_as_every_rank_by_itself) {
  const auto c = pods(6 * 17, "", leaves_of_17);
  EXPECT_EQ(blocks_of_ring(c, 408), 6);
  for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
    for (const std::int64_t tokens : {64, 1024})
      expect_exact(c, 408, tokens, {.schedule = "ring"}, pass);
  }
}

// Half a minute: --gtest_also_run_disabled_tests.
TEST(ring_of_ranks, DISABLED_blocks_of_cells_with_a_straggler_or_a_slow_link) {
  const auto slow_link =
      "slow_links: {node100.nic0->" + leaf_of(16 * 17, leaves_of_17, 100) + ": 0.5}\n";
  for (const auto& extra : {std::string("slow_devices: {500: 0.5}\n"), slow_link}) {
    const auto c = pods(16 * 17, extra, leaves_of_17);
    EXPECT_EQ(blocks_of_ring(c, 1088), 16);
    expect_exact(c, 1088, 1024, {.schedule = "ring"}, pass_kind::backward);
  }
}

// Where all compute alike and links make few classes, one of each is less than rounds of rows.
TEST(ring_of_ranks, ranks_that_are_alike_stay_classes) {
  const auto c = read_cluster(config_node::parse_text(
      "name: star\ndevice: ideal\nnodes: 96\ndevices_per_node: 1\nnode: {links: none}\n"
      "nics: {per_node: 1, bandwidth: 50 GB/s}\nfabric: {kind: star}\n",
      "star.yaml"));
  auto a = causal(96, 64);
  const auto s = complete({.schedule = "ring"}, a, 96);
  EXPECT_EQ(simulate({c, a, s, pass_kind::forward}).ranks.size(), 96u);
  a.mask = mask_kind::full;
  EXPECT_EQ(simulate({c, a, s, pass_kind::forward}).ranks.size(), 1u);
}

/// Operations with their times; what ends at one time has no order.
std::vector<std::tuple<seconds, seconds, std::uint32_t>> operations_of(const rank_timeline& rank) {
  std::vector<std::tuple<seconds, seconds, std::uint32_t>> all;
  for (const auto& i : rank.intervals) all.emplace_back(i.end, i.start, i.operation);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& one, const auto& other) {
    return std::get<0>(one) < std::get<0>(other);
  }));
  std::sort(all.begin(), all.end());
  return all;
}

TEST(ring_of_ranks, the_slowest_ranks_operations_are_those_by_itself) {
  const auto c = pods(8);
  for (const auto layout : {token_layout::zigzag, token_layout::contiguous}) {
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      const auto a = causal(32, 1024);
      const placed_schedule i(c, a, complete({.schedule = "ring", .tokens = layout}, a, 32), pass);
      const auto fast = simulate_ring(i, {.record_slowest = true});
      ASSERT_TRUE(fast);
      const auto& slowest = fast->slowest();
      const auto exact = simulate(i, {.record = true, .merge_symmetric = false});
      EXPECT_FALSE(slowest.intervals.empty());
      EXPECT_EQ(operations_of(slowest),
                operations_of(exact.ranks[static_cast<std::size_t>(slowest.rank)]));
      for (const auto& rank : fast->ranks)
        EXPECT_EQ(rank.intervals.empty(), &rank != &slowest) << rank.rank;
    }
  }
}

TEST(ring_of_ranks, other_schedules_are_not_taken) {
  const auto c = pods(8);
  const auto a = causal(32, 1024);
  for (const auto* name : {"attention2d", "allgather"}) {
    const placed_schedule i(c, a, complete({.schedule = name}, a, 32), pass_kind::forward);
    EXPECT_FALSE(simulate_ring(i, {})) << name;
  }
}

}  // namespace ring_of_ranks_test
}  // namespace attnsim
