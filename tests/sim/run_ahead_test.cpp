// Senders that do not wait for their receivers (device.hpp, run_ahead).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model/config.hpp"
#include "model/cost/analytic.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "sim/phases.hpp"
#include "sim/simulator.hpp"
#include "tests/ring_exchanges.hpp"

namespace attnsim {
namespace run_ahead_test {

/// One device a node on an ideal switch, links of 50 GB/s and 1 us; kernels and memory take no time worth speaking of.
cluster star(int nodes, const std::string& run_ahead, const std::string& extra = "") {
  const auto transports =
      run_ahead.empty() ? "" : ", transports: {network: {run_ahead: " + run_ahead + "}}";
  return read_cluster(config_node::parse_text(
      fmt::format(
          "name: star\nnodes: {}\ndevices_per_node: 1\nnode: {{links: none}}\n"
          "nics: {{per_node: 1, bandwidth: 50 GB/s, latency: 1 us}}\nfabric: {{kind: star}}\n"
          "device: {{name: instant, peak: {{half: 1e6 PFLOP/s, fp32: 1e6 PFLOP/s}}, memory: "
          "{{capacity: 1 TB, "
          "bandwidth: 1e6 TB/s}}, multiprocessors: 1{}}}\n{}",
          nodes, transports, extra),
      "star.yaml"));
}

constexpr double bytes = 1 << 20;
constexpr double transfer = bytes / 50e9, latency = 2e-6, early = 1e-3, late = 10e-3;

/// Rank 0's end, of three in a ring: a shift, a kernel, a second shift beside a second kernel. Rank 1's kernels take longer.
double end_of_first(const std::string& run_ahead) {
  const auto c = star(3, run_ahead);
  placed_schedule i(c, exchange_problem(3, bytes), {.tokens = token_layout::contiguous},
                    ring_exchanges(3, 1, true));
  i.use_local_times([](std::size_t, int rank) { return seconds(rank == 1 ? late : early); });
  return simulate(i).ranks.front().end.value();
}

// The kernels of rank 0 end after 1 and 2 ms. Its second message goes to rank 1, which comes to it after 10 ms.
TEST(run_ahead, a_sender_goes_on_where_all_of_a_message_has_room) {
  EXPECT_NEAR(end_of_first(""), late + latency + transfer, 1e-9);
  EXPECT_NEAR(end_of_first("1 MiB"), 2 * early, 1e-9);
}

// A quarter of it has room, the rest moves from 10 ms on.
TEST(run_ahead, a_longer_message_pauses_until_its_receiver_comes) {
  EXPECT_NEAR(end_of_first("256 KiB"), late + 0.75 * transfer, 1e-9);
}

/// Three ranks gather keys; the last comes after 10 ms. What comes into it before, in bytes, and the end.
std::pair<double, double> gather_with_one_late(const std::string& run_ahead) {
  const auto c = star(3, run_ahead);
  schedule s{.name = "gather", .grid = rank_grid({3, 1}), .streams = {"compute", "column"}};
  for (const auto what : {tensor::q, tensor::k, tensor::v, tensor::o, tensor::lse})
    s.buffers.push_back({.what = what, .resident = true});
  const auto own = [](int buffer, tensor what) {
    return operand{.buffer = buffer, .what = what, .at = {}};
  };
  s.program.push_back({.kind = op_kind::attention,
                       .stream = 0,
                       .reads = {own(0, tensor::q), own(1, tensor::k), own(2, tensor::v)},
                       .writes = {own(3, tensor::o), own(4, tensor::lse)},
                       .needs = {0, 0}});
  s.program.push_back({.kind = op_kind::all_gather,
                       .stream = 1,
                       .axes = only(0),
                       .reads = {own(1, tensor::k)},
                       .writes = {own(1, tensor::k)},
                       .needs = {1, 0}});
  placed_schedule i(c, exchange_problem(3, bytes), {.tokens = token_layout::contiguous}, s);
  i.use_local_times([](std::size_t, int rank) { return seconds(rank == 2 ? late : early); });
  const auto t = simulate(i, {.record_links = true});
  std::vector<link_id> path;
  c.network.route(1, 2, path);
  const auto& load = t.links[static_cast<std::size_t>(t.load_of[path.back()])];
  return {bytes_between(load.samples, seconds(), seconds(late)), t.duration().value()};
}

// Rank 1's own keys and those that it gets from rank 0 go to rank 2 before it comes; what rank 2 sends takes as long as before.
TEST(run_ahead, a_ring_passes_on_what_does_not_come_from_the_late_one) {
  const auto [waiting, end] = gather_with_one_late("");
  EXPECT_EQ(waiting, 0);
  const auto [ahead, same_end] = gather_with_one_late("4 MiB");
  EXPECT_NEAR(ahead, 2 * bytes, 1);
  EXPECT_NEAR(same_end, end, 1e-9);
  const auto [limited, later_end] = gather_with_one_late("1.5 MiB");
  EXPECT_NEAR(limited, 1.5 * bytes, 1);
  EXPECT_NEAR(later_end, end, 1e-9);
}

/// Calls f(strategy, pass) for every schedule and grid of 16 ranks, or of half of them after an exchange of heads.
template <typename F>
void for_each_run(const attention& a, F f) {
  for (const auto& algorithm : algorithms()) {
    for (const int ulysses : {1, 4}) {
      for (const auto& [rows, cols] : grids_of(16 / ulysses)) {
        const strategy s{.schedule = algorithm.name,
                         .rows = rows,
                         .cols = cols,
                         .ulysses = ulysses,
                         .tokens = token_layout::contiguous};
        if (!refusal(s, a).empty()) continue;
        for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
          if (has_pass(s, pass)) f(s, pass);
        }
      }
    }
  }
}

attention problem() {
  return {
      .heads = 8, .kv_heads = 4, .head_dim = 128, .sequence = 16 * 512, .mask = mask_kind::full};
}

// Rounds of a collective end at whole picoseconds each.
TEST(run_ahead, changes_nothing_among_equal_ranks_and_links) {
  const auto waiting = star(16, ""), ahead = star(16, "4 MiB");
  int runs = 0;
  for_each_run(problem(), [&](const strategy& s, pass_kind pass) {
    const placed_schedule a(waiting, problem(), s, pass), b(ahead, problem(), s, pass);
    EXPECT_NEAR(simulate(b).duration().value(), simulate(a).duration().value(), 100e-12)
        << s.schedule << ' ' << s.rows << 'x' << s.cols << ' ' << s.ulysses;
    EXPECT_EQ(estimate(b).time.value(), estimate(a).time.value());
    EXPECT_EQ(simulate(b).slowest().bytes_sent, simulate(a).slowest().bytes_sent);
    ++runs;
  });
  EXPECT_GT(runs, 50);
}

// To the picosecond: classes of ranks against every rank by itself, where most are alike and where none are.
TEST(run_ahead, merged_ranks_are_as_every_rank_by_itself) {
  std::mt19937 random(1);
  std::size_t fewest = 16;
  for (const auto* extra :
       {"", "slow_links: {node5.nic0->switch0: 0.5, switch0->node5.nic0: 0.5}\n",
        "slow_devices: {3: 0.5}\n"}) {
    for (const auto* run_ahead : {"96 KiB", "4 MiB"}) {
      const auto c = star(16, run_ahead, extra);
      for_each_run(problem(), [&](const strategy& s, pass_kind pass) {
        placed_schedule i(c, problem(), s, pass);
        std::vector<double> times;
        for (std::size_t op = 0; op < i.program().program.size(); ++op)
          times.push_back(1e-6 * static_cast<double>(random() % 500));
        i.use_local_times([&](std::size_t op, int rank) {
          return seconds(times[op] * (1 + (rank / 4 == 2)) / i.speed_of(rank));
        });
        const auto merged = simulate(i), exact = simulate(i, {.merge_symmetric = false});
        fewest = std::min(fewest, merged.ranks.size());
        for (std::size_t rank = 0; rank < 16; ++rank) {
          const auto& of = merged.ranks[static_cast<std::size_t>(merged.class_of[rank])];
          ASSERT_EQ(of.end.value(), exact.ranks[rank].end.value())
              << s.schedule << ' ' << s.rows << 'x' << s.cols << ' ' << s.ulysses << " rank "
              << rank;
        }
      });
    }
  }
  EXPECT_LT(fewest, 5u);
}

// The rank behind a slow link: ranks that are done with their rows send their columns' sums to it while it still gathers.
TEST(run_ahead, a_slow_link_is_shared_with_what_comes_early) {
  const auto* slow = "slow_links: {node5.nic0->switch0: 0.5, switch0->node5.nic0: 0.5}\n";
  const strategy s{
      .schedule = "attention2d", .rows = 4, .cols = 4, .tokens = token_layout::contiguous};
  const auto time = [&](const std::string& run_ahead) {
    const auto c = star(16, run_ahead, slow);
    return simulate(placed_schedule(c, problem(), s, pass_kind::backward)).duration().value();
  };
  EXPECT_GT(time("4 MiB"), 1.1 * time(""));
}

}  // namespace run_ahead_test
}  // namespace attnsim
