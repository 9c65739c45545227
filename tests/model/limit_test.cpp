#include "model/limit/limit.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"
#include "sim/simulator.hpp"

namespace attnsim {
namespace limit_test {

using ::testing::DoubleNear;
using ::testing::Ge;

time_limit limit_on_all(const cluster& c, const attention& a, pass_kind pass) {
  std::vector<int> devices;
  for (int d = 0; d < c.devices(); ++d) devices.push_back(d);
  return limit_of(c, a, {.schedule = "ring"}, devices, pass);
}

/// Devices that compute at `peak` behind NICs of 1 GB/s on a switch.
cluster hosts(int nodes, const std::string& peak, const std::string& more = "") {
  return read_cluster(config_node::parse_text(fmt::format(R"(
name: hosts
device:
  name: simple
  source: none
  peak: {{half: {0}, fp32: {0}}}
  memory: {{capacity: 80 GiB, bandwidth: 1000 TB/s}}
  multiprocessors: 1
nodes: {1}
devices_per_node: 1
nics: {{per_node: 1, bandwidth: 1 GB/s, attach: one-per-device}}
fabric: {{kind: star}}
{2}
)",
                                                          peak, nodes, more),
                                              "hosts"));
}

constexpr attention small{
    .heads = 4, .kv_heads = 4, .head_dim = 50, .sequence = 4000, .mask = mask_kind::full};

TEST(limit, is_the_work_over_all_devices_speed_where_links_are_fast) {
  const auto c = hosts(2, "1 TFLOP/s", "slow_devices: {1: 0.5}");
  const auto limit = limit_on_all(
      c, {.heads = 4, .kv_heads = 4, .head_dim = 50, .sequence = 400000, .mask = mask_kind::full},
      pass_kind::forward);
  EXPECT_EQ(limit.bound_by, "work");
  EXPECT_THAT(limit.time.value(), DoubleNear(4.0 * 50 * 4 * 4e5 * 4e5 / 1.5e12, 1e-6));
}

TEST(limit, of_hosts_that_compute_at_once_is_nearly_what_ulysses_sends) {
  const auto c = hosts(4, "1e9 TFLOP/s");
  const auto limit = limit_on_all(c, small, pass_kind::forward);
  EXPECT_EQ(limit.bound_by, "the links of node0 (nic to switch) and the others alike");
  // q, k, v and o of all tokens are 1.6 MB each. Of its heads a host computes a quarter of the pairs. From its own sixteenth on,
  // for which a quarter of q, k, v, o moves, to all, for which three quarters do, bytes go with the pairs:
  // (1/4 - 1/16) / (1 - 1/16) = 1/5 of the way. Ulysses moves 3/4 x 6.4 MB / 2 a host.
  const double all = 4 * 1.6e6;
  EXPECT_THAT(limit.time.value(),
              DoubleNear(all * (1.0 / 4 + (3.0 / 4 - 1.0 / 4) / 5) / 2e9, 1e-9));
  const auto ulysses = simulate(placed_schedule(
      c, small, {.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 4}, pass_kind::forward));
  EXPECT_THAT(ulysses.duration().value(), DoubleNear(all * 3 / 8 / 2e9, 1e-6));
}

TEST(limit, of_one_device_is_work) {
  EXPECT_EQ(limit_on_all(hosts(1, "1 TFLOP/s"), small, pass_kind::backward).bound_by, "work");
}

template <typename T>
const T& pick(const std::vector<T>& list, std::mt19937& random) {
  return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
}

cluster random_cluster(std::mt19937& random) {
  const auto fabric = pick<std::string>(
      {"{kind: star}", "{kind: fat-tree, nodes_per_leaf: 2, oversubscription: 4, latency: 1 us}",
       "{kind: rail-optimized, nodes_per_leaf: 2, oversubscription: 2}",
       "{kind: dragonfly, groups: 2, routers_per_group: 2, nodes_per_router: 1, global_links: 1, "
       "bandwidth: 5 GB/s, latency: 1 us}",
       "{kind: torus, dims: [2, 2], bandwidth: 5 GB/s, latency: 1 us}"},
      random);
  const auto node = pick<std::string>({"{links: nvswitch, bandwidth: 100 GB/s, latency: 1 us}",
                                       "{links: pcie, bandwidth: 10 GB/s, devices_per_switch: 2, "
                                       "sockets: 1}",
                                       "{links: full-mesh, bandwidth: 60 GB/s}"},
                                      random);
  return read_cluster(config_node::parse_text(
      fmt::format(R"(
name: random
device: {}
nodes: 4
devices_per_node: 2
node: {}
nics: {{per_node: 2, bandwidth: {} GB/s, latency: {} us, attach: one-per-device}}
fabric: {}
slow_devices: {{{}: {}}}
)",
                  pick<std::string>({"h100-sxm5", "a100-sxm4-80gb", "ideal", "l20"}, random), node,
                  pick<int>({1, 5, 25}, random), pick<int>({0, 2}, random), fabric,
                  pick<int>({0, 3, 7}, random), pick<double>({1, 0.5, 0.25}, random)),
      "random"));
}

attention random_problem(std::mt19937& random) {
  attention a{.heads = 8, .sequence = pick<std::int64_t>({256, 2048, 16384, 131072}, random)};
  a.batch = pick<std::int64_t>({1, 1, 2}, random);
  a.kv_heads = pick<std::int64_t>({8, 2, 1}, random);
  a.head_dim = pick<std::int64_t>({64, 128}, random);
  a.mask = pick<mask_kind>({mask_kind::full, mask_kind::causal}, random);
  if (a.mask == mask_kind::causal) a.window = pick<std::int64_t>({0, 0, 0, 100}, random);
  return a;
}

strategy random_strategy(const cluster& c, const attention& a, int ranks, std::mt19937& random) {
  while (true) {
    strategy s{.schedule =
                   pick(std::vector(algorithms().begin(), algorithms().end()), random).name};
    s.tensor_parallel = pick<int>({1, 1, 1, 2}, random);
    s.ulysses = pick<int>({1, 2, 4, 8}, random);
    if (ranks % ranks_per_place(s) != 0) continue;
    std::tie(s.rows, s.cols) = pick(grids_of(ranks / ranks_per_place(s)), random);
    s.tokens = pick<token_layout>(
        {token_layout::contiguous, token_layout::zigzag, token_layout::striped}, random);
    s.order = pick<kv_order>({kv_order::direct, kv_order::transposed}, random);
    s.reduction = pick<reduction_kind>({reduction_kind::ring, reduction_kind::all_to_all}, random);
    if (!refusal(s, a).empty()) continue;
    s.placement = pick(distinct_placements(schedule_grid(s), c), random);
    return s;
  }
}

/// Ranks of the grid divided over at most three levels, each with what it does.
std::vector<level> random_levels(int ranks, std::mt19937& random) {
  std::vector<level> levels;
  for (int rest = ranks; rest > 1 || levels.empty(); rest /= levels.back().ranks) {
    const int extent = pick<int>({2, 4, 8, rest}, random);
    if (rest % extent != 0) return random_levels(ranks, random);
    levels.push_back(
        {pick<level_kind>(
             {level_kind::keys_gather, level_kind::keys_ring, level_kind::queries_gather}, random),
         extent});
  }
  return levels;
}

/// As the search makes them: composed or published, in parts, with unequal shares.
strategy random_find(const cluster& c, const attention& a, int ranks, std::mt19937& random) {
  while (true) {
    auto s = random_strategy(c, a, ranks, random);
    if (pick<int>({0, 1, 1}, random) == 1) {
      s.schedule = "composed";
      s.order = kv_order::direct;
      s.levels = random_levels(s.rows * s.cols, random);
      s.rows = s.cols = 1;
      for (const auto& one : s.levels)
        (one.kind == level_kind::queries_gather ? s.cols : s.rows) *= one.ranks;
    }
    s.parts = pick<int>({1, 2, 4}, random);
    if (s.rows * s.cols > 1 && pick<int>({0, 1}, random) == 1) {
      for (int chunk = 0; chunk < s.rows * s.cols; ++chunk)
        s.shares.push_back(pick<int>({1, 2, 3, 8}, random));
    }
    if (!refusal(s, a).empty()) continue;
    s.placement = pick(distinct_placements(schedule_grid(s), c), random);
    return s;
  }
}

struct trial {
  const cluster& c;
  attention a;
  strategy s;
  pass_kind pass;
};

void expect_no_less_than_limit(const trial& t) {
  constexpr double a_picosecond = 1e-12;  // of the simulator's clock
  const auto time = simulate(placed_schedule(t.c, t.a, t.s, t.pass)).duration();
  const auto devices = place(t.s.placement, schedule_grid(t.s), t.c);
  const auto limit = limit_of(t.c, t.a, t.s, devices, t.pass);
  EXPECT_THAT(time.value(), Ge(limit.time.value() * (1 - 1e-6) - a_picosecond))
      << t.c.device.name << " " << t.s.schedule << " " << t.s.rows << "x" << t.s.cols << " U"
      << t.s.ulysses << " tp" << t.s.tensor_parallel << " levels " << written(t.s.levels)
      << " parts " << t.s.parts << " shares " << fmt::format("{}", fmt::join(t.s.shares, ","))
      << " " << t.s.placement << " " << name_of(t.pass) << " " << t.a.sequence << " kv"
      << t.a.kv_heads << " " << name_of(t.a.mask) << " " << limit.bound_by;
}

TEST(limit, is_not_beaten_by_any_of_six_thousand_random_schedules) {
  std::mt19937 random(25);
  int cases = 0;
  for (int i = 0; i < 200; ++i) {
    const auto c = random_cluster(random);
    for (int k = 0; k < 30; ++k) {
      auto a = random_problem(random);
      const int ranks = pick<int>({2, 4, 8, 8}, random);
      const auto s = random_strategy(c, a, ranks, random);
      auto pass = pick<pass_kind>({pass_kind::forward, pass_kind::backward}, random);
      if (!has_pass(s, pass)) pass = pass_kind::forward;
      if (pass == pass_kind::forward && !find_algorithm(s.schedule).for_windows)
        a.prefix = pick<std::int64_t>({0, 0, a.sequence}, random);
      expect_no_less_than_limit({c, a, s, pass});
      ++cases;
    }
  }
  EXPECT_EQ(cases, 6000);
}

TEST(limit, is_not_beaten_by_compositions_parts_and_unequal_shares) {
  std::mt19937 random(26);
  int cases = 0;
  for (int i = 0; i < 200; ++i) {
    const auto c = random_cluster(random);
    for (int k = 0; k < 30; ++k) {
      const auto a = random_problem(random);
      const auto s = random_find(c, a, pick<int>({2, 4, 8, 8}, random), random);
      auto pass = pick<pass_kind>({pass_kind::forward, pass_kind::backward}, random);
      if (!has_pass(s, pass)) pass = pass_kind::forward;
      try {
        expect_no_less_than_limit({c, a, s, pass});
        ++cases;
      } catch (const infeasible&) {             // shares of a schedule that has none
      } catch (const std::invalid_argument&) {  // too many streams
      }
    }
  }
  EXPECT_GE(cases, 2500);
}

TEST(limit, knows_that_tokens_with_their_home_on_one_host_need_not_move) {
  const auto c = hosts(2, "1e9 TFLOP/s");
  const attention one_head{
      .heads = 1, .kv_heads = 1, .head_dim = 50, .sequence = 4000, .mask = mask_kind::full};
  const auto limit = [&](std::vector<int> shares) {
    return limit_of(c, one_head,
                    {.schedule = "ring",
                     .rows = 2,
                     .cols = 1,
                     .tokens = token_layout::contiguous,
                     .shares = std::move(shares)},
                    {0, 1}, pass_kind::forward);
  };
  // Whichever host computes what, the smaller one's rows or columns cross, and its own results' or the others' rows: two tensors
  // in and two out of 100 B a token are the least. Both ways together 2 GB/s.
  EXPECT_THAT(limit({}).time.value(), DoubleNear(4 * 2000 * 100 / 2e9, 1e-9));
  EXPECT_THAT(limit({1, 3}).time.value(), DoubleNear(4 * 1000 * 100 / 2e9, 1e-9));
}

TEST(known_limits, are_those_of_each_strategy_alone) {
  std::mt19937 random(26);
  for (int i = 0; i < 10; ++i) {
    const auto c = random_cluster(random);
    const auto a = random_problem(random);
    known_limits known(c, a);
    for (int k = 0; k < 30; ++k) {
      const auto s = random_strategy(c, a, pick<int>({2, 4, 8, 8}, random), random);
      const auto pass = pick<pass_kind>({pass_kind::forward, pass_kind::backward}, random);
      const auto devices = place(s.placement, schedule_grid(s), c);
      const auto alone = limit_of(c, a, s, devices, pass), found = known.of(s, devices, pass);
      EXPECT_EQ(found.time, alone.time) << s.schedule << " " << s.placement;
      EXPECT_EQ(found.bound_by, alone.bound_by) << s.schedule << " " << s.placement;
    }
  }
}

}  // namespace limit_test
}  // namespace attnsim
