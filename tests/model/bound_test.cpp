#include "model/cost/bound.hpp"

#include <gmock/gmock.h>

#include <random>

#include "ask/predict.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"

namespace attnsim {
namespace bound_test {

using ::testing::DoubleNear;
using ::testing::Le;

/// Four nodes of one device behind NICs of 1 GB/s on a switch, and nothing computes: peak and rates are out of reach.
cluster four_hosts() {
  return read_cluster(config_node::parse_text(R"(
name: four
device:
  name: fast
  source: none
  peak: {half: 1e9 TFLOP/s, fp32: 1e9 TFLOP/s}
  memory: {capacity: 80 GiB, bandwidth: 1000 TB/s}
  multiprocessors: 1
nodes: 4
devices_per_node: 1
nics: {per_node: 1, bandwidth: 1 GB/s, attach: one-per-device}
fabric: {kind: star}
)",
                                              "four"));
}

/// 1000 tokens a rank, 4 heads of 50 and 2 K/V heads, bf16: q = 400 kB, K and V together 400 kB.
constexpr attention small{
    .heads = 4, .kv_heads = 2, .head_dim = 50, .sequence = 4000, .mask = mask_kind::full};

double bound_on_hosts(const strategy& s, pass_kind pass) {
  const auto c = four_hosts();
  return time_bound(c, small).of(s, place(s.placement, schedule_grid(s), c), pass).value();
}

TEST(bound, is_the_transfers_time_where_computation_takes_none) {
  const double shard = 400e3 / 1e9;     // of q, of k and v, of their gradients
  const double statistic = 16e3 / 1e9;  // 4 heads of 1000 tokens, 4 bytes
  const auto near = [](double t) { return DoubleNear(t, t * 1e-6); };
  const strategy ring{.schedule = "ring", .rows = 4, .cols = 1};
  EXPECT_THAT(bound_on_hosts(ring, pass_kind::forward), near(3 * shard));
  EXPECT_THAT(bound_on_hosts(ring, pass_kind::backward), near((3 + 4) * shard));
  const strategy square{.schedule = "attention2d", .rows = 2, .cols = 2};
  EXPECT_THAT(bound_on_hosts(square, pass_kind::forward), near(2 * shard + statistic + shard));
  EXPECT_THAT(bound_on_hosts(square, pass_kind::backward),
              near(3 * shard + 2 * statistic + 2 * shard));
  // Four ranks exchange 2 q, and keys and values: a rank's part of two heads becomes one whole head.
  const strategy ulysses{.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 4};
  EXPECT_THAT(bound_on_hosts(ulysses, pass_kind::forward), near(0.75 * (2 * shard + 2 * shard)));
}

template <typename T>
const T& pick(const std::vector<T>& list, std::mt19937& random) {
  return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
}

strategy random_strategy(const cluster& c, const attention& a, std::mt19937& random) {
  std::vector<std::string> names;
  for (const auto& one : algorithms()) names.emplace_back(one.name);
  while (true) {
    strategy s{.schedule = pick(names, random)};
    s.ulysses = pick<int>({1, 2, 4, 16}, random);
    std::tie(s.rows, s.cols) = pick(grids_of(c.devices() / s.ulysses), random);
    s.tokens = pick<token_layout>(
        {token_layout::contiguous, token_layout::zigzag, token_layout::striped}, random);
    s.order = pick<kv_order>({kv_order::direct, kv_order::transposed}, random);
    if (!refusal(s, a).empty()) continue;
    s.placement = pick(distinct_placements(schedule_grid(s), c), random);
    return s;
  }
}

TEST(bound, never_exceeds_what_is_predicted) {
  std::mt19937 random(7);
  for (const auto* name : {"nd-h100-v5", "nd-a100-v4", "star", "pcie-8"}) {
    const int nodes = std::string(name) == "star" ? 16 : 2;
    const auto c = read_cluster(name, {.nodes = nodes});
    for (int i = 0; i < 30; ++i) {
      attention a{.heads = 16, .sequence = pick<std::int64_t>({2048, 16384, 131072}, random)};
      a.kv_heads = pick<std::int64_t>({16, 4, 1}, random);
      a.mask = pick<mask_kind>({mask_kind::full, mask_kind::causal}, random);
      if (a.mask == mask_kind::causal) a.window = pick<std::int64_t>({0, 0, 1000}, random);
      auto s = random_strategy(c, a, random);
      if (c.device.name == "h100-sxm5")
        s.kernel = pick<std::string>({"", "attnsim-cuda", "cudnn-9.19"}, random);
      auto pass = pick<pass_kind>({pass_kind::forward, pass_kind::backward}, random);
      if (!has_pass(s, pass)) pass = pass_kind::forward;
      if (pass == pass_kind::forward && !find_algorithm(s.schedule).for_windows)
        a.prefix = pick<std::int64_t>({0, 0, a.sequence, 15 * a.sequence}, random);
      const auto bound = time_bound(c, a).of(s, place(s.placement, schedule_grid(s), c), pass);
      for (const auto by : {prediction_method::analytic, prediction_method::simulation}) {
        EXPECT_THAT(bound.value(), Le(predict(c, a, s, c.devices(), pass, by).time.value()))
            << name << " " << s.schedule << " " << s.rows << "x" << s.cols << " U" << s.ulysses
            << " " << s.placement << " " << name_of(pass);
      }
    }
  }
}

}  // namespace bound_test
}  // namespace attnsim
