#include "sim/simulator.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/config.hpp"
#include "model/cost/analytic.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace simulator_test {

/// One device a node on an ideal switch; every message crosses two links of 1 us.
cluster star(int nodes, const std::string& extra = "", const std::string& device = "ideal") {
  return read_cluster(config_node::parse_text(
      "name: star\ndevice: " + device + "\nnodes: " + std::to_string(nodes) +
          "\ndevices_per_node: 1\nnode: {links: none}\n"
          "nics: {per_node: 1, bandwidth: 50 GB/s, latency: 1 us}\n"
          "fabric: {kind: star}\n" +
          extra,
      "star.yaml"));
}

/// A device that computes in no time worth speaking of, so that only communication shows.
constexpr const char* instant_device =
    "{name: instant, peak: {half: 1e9 PFLOP/s, fp32: 1e9 PFLOP/s}, memory: {capacity: 1 TB, "
    "bandwidth: 1e12 TB/s}, "
    "multiprocessors: 1}";

/// K and V of one rank: 2 x 8 heads x 128 x 2 B x 16384 tokens = 64 MiB.
attention ring_problem(int ranks) {
  return {.heads = 8,
          .kv_heads = 8,
          .head_dim = 128,
          .sequence = ranks * 16384,
          .mask = mask_kind::full};
}

strategy ring(int ranks) {
  return {.schedule = "ring", .rows = ranks, .cols = 1, .tokens = token_layout::contiguous};
}

double duration(const cluster& c, const attention& a, const strategy& s,
                pass_kind pass = pass_kind::forward, bool merge = true) {
  const placed_schedule i(c, a, s, pass);
  return simulate(i, {.merge_symmetric = merge}).duration().value();
}

// 67,108,864 B / 50 GB/s + 2 us = 1.344177 ms a step.
TEST(simulator, a_64_mib_ring_step_takes_1_344177_ms) {
  const auto c = star(8, "", instant_device);
  EXPECT_NEAR(duration(c, ring_problem(8), ring(8)) / 7, 1.344177e-3, 1e-9);
}

// Steps of max(compute, transfer) and one last block. Ideal device, 1 PFLOP/s:
//   compute  4 x 16384^2 x 8 x 128 / 1e15 = 1.0995 ms a block, then its merge: read 32 MiB + 0.5 MiB, read and write
//            64 MiB + 0.5 MiB each at 4 TB/s
//   transfer 1.3442 ms, so the three steps take that
TEST(simulator, ring_hides_computation_under_longer_transfers) {
  const auto c = star(4);
  const double block = 4.0 * 16384 * 16384 * 8 * 128 / 1e15;
  const double mib = 1 << 20;
  const double merge = (32 * mib + 2 * 64 * mib + 3 * 0.5 * mib) / 4e12;
  const double cast = (64 * mib + 32 * mib + 2 * 0.5 * mib) / 4e12;  // o from fp32, lse beside it
  EXPECT_NEAR(duration(c, ring_problem(4), ring(4)),
              3 * (67108864 / 50e9 + 2e-6) + block + merge + cast, 1e-10);
}

// Rank 3 at half speed computes a block in 2.199 ms, longer than a transfer. All others wait for it in the ring, so each
// step takes its block and merge; its first block has no merge.
TEST(simulator, a_straggler_sets_the_pace) {
  const auto c = star(4, "slow_devices: {3: 0.5}\n");
  const double mib = 1 << 20;
  const double block = 2 * 4.0 * 16384 * 16384 * 8 * 128 / 1e15;
  const double merge = 2 * (32 * mib + 2 * 64 * mib + 3 * 0.5 * mib) / 4e12;
  const double cast = 2 * (64 * mib + 32 * mib + 2 * 0.5 * mib) / 4e12;
  EXPECT_NEAR(duration(c, ring_problem(4), ring(4)), 4 * block + 3 * merge + cast, 1e-10);
}

// The link from the switch to device 2 at half speed: every chunk crosses it once, 2.684 ms instead of 1.342.
TEST(simulator, a_link_at_half_speed_sets_the_pace) {
  const auto c = star(4, "slow_links: {switch0->node2.nic0: 0.5}\n", instant_device);
  EXPECT_NEAR(duration(c, ring_problem(4), ring(4)), 3 * (67108864 / 25e9 + 2e-6), 1e-9);
}

TEST(simulator, symmetric_ranks_are_one_class_and_a_straggler_splits_them) {
  const auto a = ring_problem(8);
  const auto alike = star(8), different = star(8, "slow_devices: {3: 0.5}\n");
  EXPECT_EQ(simulate(placed_schedule(alike, a, ring(8), pass_kind::forward)).ranks.size(), 1u);
  EXPECT_EQ(simulate(placed_schedule(different, a, ring(8), pass_kind::forward)).ranks.size(), 8u);
}

// Gathers of queries along rows and keys along columns leave each device by one link and share it: 2 x 2, q = 32 MiB and
// kv = 64 MiB a rank. Together 96 MiB at 50 GB/s, then computation, then 32.5 MiB of partial output.
TEST(simulator, two_collectives_of_one_rank_run_at_once) {
  const auto c = star(4, "", instant_device);
  const strategy s{
      .schedule = "attention2d", .rows = 2, .cols = 2, .tokens = token_layout::contiguous};
  const double mib = 1 << 20;
  EXPECT_NEAR(duration(c, ring_problem(4), s), (96 + 32.5) * mib / 50e9 + 2e-6 + 2e-6, 1e-9);
}

/// Merging symmetric ranks changes no result: random strategies on clusters with and without symmetry.
TEST(simulator, classes_of_ranks_give_the_result_of_all_ranks) {
  for (const auto* name : {"nd-h100-v5", "nd-a100-v4", "gb200-nvl72"}) {
    for (const auto* slow : {"", "3"}) {
      cluster_overrides overrides{.nodes = 2};
      if (*slow != '\0') overrides.set.emplace_back("slow_devices", "{3: 0.7}");
      const auto c = read_cluster(name, overrides);
      for (const auto mask : {mask_kind::full, mask_kind::causal}) {
        const attention a{
            .heads = 16, .kv_heads = 4, .head_dim = 128, .sequence = 16 * 2048, .mask = mask};
        for (const auto& algorithm : algorithms()) {
          for (const auto& [rows, cols] : grids_of(16)) {
            const strategy s{.schedule = algorithm.name,
                             .rows = rows,
                             .cols = cols,
                             .tokens = token_layout::striped};
            if (!refusal(s, a).empty()) continue;
            for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
              if (!has_pass(s, pass)) continue;
              const double all = duration(c, a, s, pass, false);
              constexpr double rounded = 1e-11;  // each of some dozen events to a picosecond
              EXPECT_NEAR(duration(c, a, s, pass, true), all, all * 1e-9 + rounded)
                  << name << " " << s.schedule << " " << rows << "x" << cols << " " << name_of(pass)
                  << slow;
            }
          }
        }
      }
    }
  }
}

// Communication that becomes ready while a persistent kernel runs waits for its end where it needs multiprocessors.
// attention2d-overlap on 1 x 4: the own block computes for 1.0995 ms. The first query chunk, 32 MiB, arrives after 0.673 ms;
// the next hop is ready then and takes 0.673 ms more from there, or from the kernel's end.
TEST(simulator, communication_waits_for_room_beside_a_kernel) {
  const strategy s{
      .schedule = "attention2d-overlap", .rows = 1, .cols = 4, .tokens = token_layout::contiguous};
  const auto end_of_second_hop = [&](const char* channels) {
    const auto c = star(4, "",
                        "{name: d, peak: {half: 1 PFLOP/s, fp32: 1 PFLOP/s}, memory: {capacity: 1 "
                        "TB, bandwidth: 1e12 TB/s}, "
                        "multiprocessors: 100, transports: {network: {channels: " +
                            std::string(channels) + "}}}");
    const placed_schedule i(c, ring_problem(4), s, pass_kind::forward);
    const auto t = simulate(i, {.record = true});
    std::vector<double> ends;
    for (const auto& v : t.ranks[0].intervals) {
      if (is_communication(i.program().program[v.operation].kind)) ends.push_back(v.end.value());
    }
    return ends.at(1);
  };
  const double hop = 33554432 / 50e9 + 2e-6, block = 4.0 * 16384 * 16384 * 8 * 128 / 1e15;
  EXPECT_NEAR(end_of_second_hop("0"), 2 * hop, 1e-9);
  EXPECT_NEAR(end_of_second_hop("8"), block + hop, 1e-9);
}

/// As on two H100: tests/gpu/README.md, overlap.
/// An ideal device of so many hardware queues; TCP divides its links so unevenly.
std::string with_queues(int queues, double spread = 0) {
  return "{name: queues, peak: {half: 1 PFLOP/s, fp32: 1 PFLOP/s}, memory: {capacity: 1 TB, "
         "bandwidth: 1e12 TB/s}, multiprocessors: 1" +
         (queues > 0 ? ", queues: " + std::to_string(queues) : "") +
         ", transports: {network: {share_spread: " + std::to_string(spread) + "}}}";
}

// Four blocks of 1.0995 ms and three transfers of 1.3442 ms, forward on streams 0 and 1: in one queue one after the other. In
// two, as without a limit, blocks hide under transfers but for the last.
TEST(simulator, streams_of_one_hardware_queue_take_turns) {
  const double block = 4.0 * 16384 * 16384 * 8 * 128 / 1e15, transfer = 67108864 / 50e9 + 2e-6;
  const auto time = [](int queues) {
    return duration(star(4, "", with_queues(queues)), ring_problem(4), ring(4));
  };
  EXPECT_NEAR(time(1), 4 * block + 3 * transfer, 1e-9);
  const auto one = star(4, "", with_queues(1));
  const placed_schedule closed(one, ring_problem(4), ring(4), pass_kind::forward);
  EXPECT_NEAR(estimate(closed).time.value(), time(1), 1e-9);
  EXPECT_NEAR(time(2), 3 * transfer + block, 1e-9);
  EXPECT_EQ(time(2), time(0));
}

TEST(simulator, a_graph_has_no_streams_to_share_a_queue) {
  auto s = ring(4);
  s.start = run_start::idle_graph;
  const auto one = star(4, "", with_queues(1)), enough = star(4, "", with_queues(0));
  EXPECT_EQ(duration(one, ring_problem(4), s), duration(enough, ring_problem(4), s));
}

// Uneven shares cost nothing where a rank has one peer: backward, keys and gradients go the same way. Where its exchanges go two
// ways at once, a link that waits for a slow exchange elsewhere is idle meanwhile.
TEST(simulator, uneven_shares_of_links_slow_exchanges_with_several_peers) {
  const auto even = star(8, "", with_queues(0)), uneven = star(8, "", with_queues(0, 0.5));
  const auto a = ring_problem(8);
  EXPECT_NEAR(duration(uneven, a, ring(8), pass_kind::backward),
              duration(even, a, ring(8), pass_kind::backward), 1e-9);
  const strategy both_ways{
      .schedule = "tokenring", .rows = 8, .cols = 1, .tokens = token_layout::contiguous};
  const double ratio = duration(uneven, a, both_ways) / duration(even, a, both_ways);
  EXPECT_GT(ratio, 1.02);
  EXPECT_LT(ratio, 1.5);
}

TEST(simulator, communication_launched_behind_a_kernel_waits_for_it) {
  const auto c = star(2, "",
                      "{name: d, peak: {half: 1 PFLOP/s, fp32: 1 PFLOP/s}, memory: {capacity: 1 "
                      "TB, bandwidth: 1e12 TB/s}, "
                      "multiprocessors: 100, transports: {network: {channels: 8}}}");
  const auto end = [&](launch_order order) {
    auto s = ring(2);
    s.launch = order;
    const placed_schedule i(c, ring_problem(2), s, pass_kind::forward);
    const auto t = simulate(i, {.record = true});
    double ends = 0;
    for (const auto& v : t.ranks[0].intervals) {
      if (is_communication(i.program().program[v.operation].kind)) ends = v.end.value();
    }
    return std::pair{ends, t.ranks[0].intervals.front().end.value()};
  };
  const auto [hop, block] = end(launch_order::communication_first);
  ASSERT_GT(hop, block);
  EXPECT_NEAR(end(launch_order::compute_first).first, block + hop, 0.02 * (hop + block));
}

// The first exchange is launched in 50 us, the kernel 10 us later; it runs beside the transfer, the rest is as before. With
// the kernel first it starts after 10 us, and the exchange waits for its end. As a graph both are there after 20 us, and the
// first captured goes first.
TEST(simulator, a_run_that_starts_idle_waits_for_its_launches) {
  const auto c = star(2, "",
                      "{name: d, peak: {half: 1000 TFLOP/s, fp32: 100 TFLOP/s}, memory: "
                      "{capacity: 80 GB, bandwidth: 1e6 TB/s}, multiprocessors: 100, idle_start: "
                      "{launch: 10 us, launch_communication: 50 us, graph_launch: 20 us}, "
                      "transports: {network: {channels: 8}}}");
  const auto first_kernel = [&](launch_order order, run_start start = run_start::idle) {
    auto s = ring(2);
    s.launch = order;
    s.start = start;
    const placed_schedule i(c, ring_problem(2), s, pass_kind::forward);
    const auto t = simulate(i, {.record = true});
    for (const auto& span : t.ranks[0].intervals) {
      if (is_kernel(i.program().program[span.operation].kind)) return span.start.value();
    }
    return -1.0;
  };
  EXPECT_NEAR(first_kernel(launch_order::communication_first), 60e-6, 1e-12);
  EXPECT_NEAR(first_kernel(launch_order::compute_first), 10e-6, 1e-12);
  EXPECT_NEAR(first_kernel(launch_order::communication_first, run_start::idle_graph), 20e-6, 1e-12);
  const auto end = [&](launch_order order) {
    auto s = ring(2);
    s.launch = order;
    s.start = run_start::idle_graph;
    return simulate(placed_schedule(c, ring_problem(2), s, pass_kind::forward)).duration();
  };
  EXPECT_GT(end(launch_order::compute_first), end(launch_order::communication_first));
}

// Each of four operations is launched in time, the last after 10 + 50 + 2 x 5 us; the second kernel waits for 67108864 bytes at
// 50 GB/s and 2 us, which began at the sixtieth, and for its gap.
TEST(simulator, a_run_that_starts_idle_has_gaps_between_its_operations) {
  auto c = star(2, "", instant_device);
  c.device.idle_start = {.launch = seconds(10e-6),
                         .launch_communication = seconds(50e-6),
                         .next = seconds(5e-6),
                         .graph_launch = seconds(20e-6),
                         .gap = seconds(4e-6),
                         .gap_communication = seconds(3e-6)};
  auto s = ring(2);
  const auto end = [&](run_start start) {
    s.start = start;
    return simulate(placed_schedule(c, ring_problem(2), s, pass_kind::forward)).duration().value();
  };
  const double transfer = 67108864 / 50e9 + 2e-6;
  EXPECT_NEAR(end(run_start::idle), 50e-6 + transfer + 2 * 4e-6, 1e-9);
  EXPECT_NEAR(end(run_start::idle_graph), 20e-6 + transfer + 2 * 4e-6, 1e-9);
  EXPECT_NEAR(end(run_start::in_sequence), transfer, 1e-9);
}

// Links wake in 30 us of the first exchange, which has its multiprocessors by then.
TEST(simulator, a_run_that_starts_idle_wakes_its_links) {
  auto c = star(2, "", instant_device);
  auto s = ring(2);
  const auto end = [&](run_start start) {
    s.start = start;
    return simulate(placed_schedule(c, ring_problem(2), s, pass_kind::forward)).duration().value();
  };
  const double awake = end(run_start::idle_graph), in_sequence = end(run_start::in_sequence);
  for (auto& t : c.device.transports) t.wake = seconds(30e-6);
  EXPECT_NEAR(end(run_start::idle_graph), awake + 30e-6, 1e-11);
  EXPECT_NEAR(end(run_start::in_sequence), in_sequence, 1e-11);
}

// A ring of two by a host: what comes after the exchange is launched at its end if the host waits for it, and takes no time.
TEST(simulator, a_host_that_waits_for_communication_launches_the_rest_at_its_end) {
  auto c = star(2, "", instant_device);
  c.host = {.name = "h",
            .attention = seconds(1e-3),
            .add = seconds(2e-3),
            .cast = seconds(3e-3),
            .exchange = seconds(1e-2)};
  const auto end = [&](host_waits waits) {
    auto s = ring(2);
    s.waits = waits;
    return simulate(placed_schedule(c, ring_problem(2), s, pass_kind::forward)).duration().value();
  };
  const double transfer = 67108864 / 50e9 + 2e-6;
  const double rest = 1e-3 + (1e-3 + 2e-3) + 3e-3;  // a kernel, another and its merge, the cast
  EXPECT_NEAR(end({}), 1e-2 + rest, 1e-9);
  EXPECT_NEAR(end({.all_gather = true}), 1e-2 + rest, 1e-9);
  EXPECT_NEAR(end({.exchange = true}), 1e-2 + transfer + rest, 1e-9);
}

// Backward the host waits twice.
TEST(simulator, a_host_waits_for_every_such_call) {
  auto c = star(2, "", instant_device);
  c.host = {.name = "h", .attention_backward = seconds(1e-3), .exchange = seconds(1e-2)};
  auto s = ring(2);
  const auto ahead = [&] {
    return simulate(placed_schedule(c, ring_problem(2), s, pass_kind::backward)).duration().value();
  };
  const double transfer = 67108864 / 50e9 + 2e-6;
  const double launches = 3 * 1e-2 + 2 * 1e-3;
  EXPECT_NEAR(ahead(), launches + transfer, 1e-9);
  s.waits.exchange = true;
  EXPECT_NEAR(ahead(), launches + 3 * transfer, 1e-9);
}

// 15 hops over two links of 1e6 s are more than the clock's 9.2e6 s, and so is one transfer at a byte per second.
TEST(simulator, refuses_what_takes_longer_than_its_clock_counts) {
  const auto message = [](const std::string& time) {
    return "simulated time: '" + time +
           "': expected at most 9.223e+06 s (106 days), which picoseconds can count";
  };
  const auto late = read_cluster("star", {.nodes = 16, .set = {{"nics.latency", "1000000 s"}}});
  EXPECT_ERROR(duration(late, ring_problem(16), ring(16)), input_error, message("3.000e+07 s"));
  const auto slow = read_cluster("star", {.nodes = 16, .set = {{"nics.bandwidth", "1 B/s"}}});
  EXPECT_ERROR(duration(slow, ring_problem(16), ring(16)), input_error, message("1.007e+09 s"));
}

TEST(simulator, link_loads_add_up_to_the_bytes_sent) {
  const auto c = star(4);
  const placed_schedule i(c, ring_problem(4), ring(4), pass_kind::forward);
  const auto t = simulate(i);
  ASSERT_FALSE(t.links.empty());
  for (const auto& l : t.links) EXPECT_DOUBLE_EQ(l.bytes, 3.0 * 67108864);
}

TEST(simulator, records_every_operation_of_a_rank) {
  const auto c = star(4);
  const placed_schedule i(c, ring_problem(4), ring(4), pass_kind::forward);
  const auto t = simulate(i, {.record = true});
  EXPECT_EQ(t.ranks[0].intervals.size(), i.program().program.size());
}

/// 96 steps of three operations, of every rank by itself.
TEST(simulate, tells_how_many_operations_are_done) {
  const auto c = star(96);
  const placed_schedule i(c, ring_problem(96), ring(96), pass_kind::forward);
  const auto all = 96 * i.program().program.size();
  std::vector<std::size_t> told;
  const auto t = simulate(i, {.merge_symmetric = false, .progress = [&](auto done, auto wanted) {
                                EXPECT_EQ(wanted, all);
                                told.push_back(done);
                              }});
  ASSERT_GT(told.size(), 2u);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_GT(told.front(), 0u);
  EXPECT_LE(told.back(), all);
  EXPECT_EQ(t.duration(), simulate(i).duration());
}

}  // namespace simulator_test
}  // namespace attnsim
