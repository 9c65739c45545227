// Programs whose end is worked out without events, against every rank by itself.
#include "sim/last_messages.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "model/schedule/algorithms/schedules.hpp"
#include "sim/simulator.hpp"
#include "tests/ring_exchanges.hpp"

namespace attnsim {
namespace last_messages_test {

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

attention causal(int ranks, std::int64_t tokens_of_rank) {
  return {.heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .sequence = ranks * tokens_of_rank,
          .mask = mask_kind::causal};
}

bool is_found(const placed_schedule& i) {
  const stream_programs programs(i);
  return last_messages::find(i, find_symmetry(i), programs).has_value();
}

/// Every rank's end, compute time and bytes, what every link carried, and the slowest rank's operations.
void expect_as_by_itself(const placed_schedule& i) {
  const auto fast = simulate(i, {.record_slowest = true});
  const auto exact = simulate(i, {.record = true, .merge_symmetric = false});
  ASSERT_EQ(fast.class_of.size(), exact.class_of.size());
  for (std::size_t rank = 0; rank < exact.class_of.size(); ++rank) {
    const auto& of = fast.ranks[static_cast<std::size_t>(fast.class_of[rank])];
    const auto& by_itself = exact.ranks[static_cast<std::size_t>(exact.class_of[rank])];
    ASSERT_EQ(of.end.value(), by_itself.end.value()) << "rank " << rank;
    ASSERT_EQ(of.compute.value(), by_itself.compute.value()) << "rank " << rank;
    ASSERT_EQ(of.bytes_sent, by_itself.bytes_sent) << "rank " << rank;
  }
  ASSERT_EQ(fast.load_of.size(), exact.load_of.size());
  for (std::size_t l = 0; l < exact.load_of.size(); ++l) {
    ASSERT_EQ(fast.load_of[l] < 0, exact.load_of[l] < 0) << "link " << l;
    if (exact.load_of[l] < 0) continue;
    ASSERT_NEAR(fast.links[static_cast<std::size_t>(fast.load_of[l])].bytes /
                    exact.links[static_cast<std::size_t>(exact.load_of[l])].bytes,
                1, 1e-12);
  }
  const auto& slowest = fast.slowest();
  const auto& same = exact.ranks[static_cast<std::size_t>(slowest.rank)];
  ASSERT_EQ(slowest.intervals.size(), same.intervals.size());
  double begun = 0, begun_by_itself = 0;
  for (std::size_t n = 0; n < same.intervals.size(); ++n) {
    begun += slowest.intervals[n].start.value();
    begun_by_itself += same.intervals[n].start.value();
  }
  EXPECT_NEAR(begun, begun_by_itself, 1e-12);
}

/// How many of both passes end without events.
int expect_exact(const cluster& c, int rows, int cols, std::int64_t tokens, strategy s) {
  s.rows = rows;
  s.cols = cols;
  int found = 0;
  for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
    SCOPED_TRACE(s.schedule + " " + std::to_string(rows) + " x " + std::to_string(cols) + ", " +
                 std::to_string(tokens) + " tokens a rank, " + std::string(name_of(pass)));
    const auto a = causal(rows * cols, tokens);
    const placed_schedule i(c, a, complete(s, a, rows * cols), pass);
    expect_as_by_itself(i);
    found += is_found(i);
  }
  return found;
}

// Rows of the larger grids are worked out by themselves.
TEST(last_messages, as_every_rank_by_itself) {
  int found = 0;
  for (const auto& [rows, cols] : {std::pair{8, 8}, {4, 16}, {16, 8}, {2, 32}, {8, 4}, {32, 8}}) {
    for (const std::int64_t tokens : {64, 1024}) {
      for (const auto layout : {token_layout::zigzag, token_layout::contiguous})
        found += expect_exact(pods(rows * cols / 4), rows, cols, tokens,
                              {.schedule = "attention2d", .tokens = layout});
    }
  }
  EXPECT_GT(found, 10);
}

// Minutes: --gtest_also_run_disabled_tests.
TEST(last_messages, DISABLED_every_grid_up_to_1024) {
  for (int rows = 1; rows <= 256; rows *= 2) {
    for (int cols = 4; rows * cols <= 1024; cols += 4)
      expect_exact(pods(rows * cols / 4), rows, cols, 1024, {.schedule = "attention2d"});
  }
}

TEST(last_messages, random_stragglers_and_slow_links_delay_whom_they_delay) {
  std::mt19937 random(3);
  const auto pick = [&](int n) { return std::to_string(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 8; ++round) {
    const auto node = pick(16), nic = pick(4);
    const auto extra =
        round % 2 == 0 ? "slow_devices: {" + pick(64) + ": 0.5, " + pick(64) + ": 0.7}\n"
                       : "slow_links: {node" + node + ".nic" + nic + "->leaf" + nic + ": 0.3}\n";
    SCOPED_TRACE(extra);
    EXPECT_GT(expect_exact(pods(16, extra), 8, 8, 256, {.schedule = "attention2d"}), 0);
  }
}

/// Communication that needs no multiprocessors, and kernels of tens of microseconds.
cluster copy_engines(int nodes, int devices_per_node, const std::string& extra = "") {
  return read_cluster(
      config_node::parse_text("name: copy-engines\ndevice: ideal\nnodes: " + std::to_string(nodes) +
                                  "\ndevices_per_node: " + std::to_string(devices_per_node) +
                                  "\nnode: {links: nvswitch, bandwidth: 450 GB/s, latency: 1 us}\n"
                                  "nics: {per_node: " +
                                  std::to_string(devices_per_node) +
                                  ", bandwidth: 50 GB/s, latency: 2 us, attach: one-per-device}\n"
                                  "fabric: {kind: rail-optimized}\n" +
                                  extra,
                              "copy-engines.yaml"));
}

TEST(last_messages, kernels_that_nothing_slows_down_need_no_events) {
  const auto c = copy_engines(8, 4, "slow_devices: {5: 0.5, 17: 0.7}\n");
  int found = 0;
  for (const std::int64_t tokens : {64, 1024, 8192}) {
    found += expect_exact(c, 32, 1, tokens, {.schedule = "ring"});
    for (const auto* name : {"double-ring", "startrail", "mesh"})
      found += expect_exact(c, 8, 4, tokens, {.schedule = name});
  }
  EXPECT_GE(found, 6);
}

// Each rank and step takes its own time; a message waits for kernels of a step before.
TEST(last_messages, unequal_exchanges_along_rings_and_grids) {
  const auto c = copy_engines(16, 1);
  for (const auto& [rows, cols] : {std::pair{16, 1}, {1, 16}, {4, 4}, {2, 8}}) {
    for (const double bytes : {1 << 16, 1 << 24}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      placed_schedule i(c, exchange_problem(16, bytes), {.tokens = token_layout::contiguous},
                        ring_exchanges(rows, cols, true));
      std::mt19937 random(5);
      std::vector<double> times;
      for (std::size_t n = 0; n < i.program().program.size() * 16; ++n)
        times.push_back(static_cast<double>(random() % 1'000'000) * 1e-10);
      i.use_local_times([&](std::size_t op, int rank) {
        return seconds(times[op * 16 + static_cast<std::size_t>(rank)]);
      });
      // On a grid a row's and a column's message may fill a link.
      EXPECT_EQ(is_found(i), rows == 1 || cols == 1);
      expect_as_by_itself(i);
    }
  }
}

TEST(last_messages, programs_that_end_otherwise_are_left_to_events) {
  const auto c = pods(16);
  const auto a = causal(64, 1024);
  for (const auto* name : {"ring", "allgather", "mesh"}) {
    const placed_schedule i(c, a, complete({.schedule = name}, a, 64), pass_kind::forward);
    EXPECT_FALSE(is_found(i)) << name;
  }
}

}  // namespace last_messages_test
}  // namespace attnsim
