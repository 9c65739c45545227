// Simulation against closed form on networks without contention and without fixed costs.
#include <gtest/gtest.h>

#include "model/cost/analytic.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "sim/simulator.hpp"

namespace attnsim {
namespace analytic_agreement_test {

cluster star(int nodes, const std::string& bandwidth) {
  return read_cluster(
      config_node::parse_text("name: star\ndevice: ideal\nnodes: " + std::to_string(nodes) +
                                  "\ndevices_per_node: 1\nnode: {links: none}\n"
                                  "nics: {per_node: 1, bandwidth: " +
                                  bandwidth +
                                  ", latency: 0 us}\n"
                                  "fabric: {kind: star}\n",
                              "star.yaml"));
}

/// Calls f for every strategy on these ranks.
template <typename F>
void for_each_strategy(int ranks, token_layout tokens, const attention& a, F f) {
  for (const auto& algorithm : algorithms()) {
    for (const auto& [rows, cols] : grids_of(ranks)) {
      for (const auto order : {kv_order::direct, kv_order::transposed}) {
        const strategy s{.schedule = algorithm.name,
                         .rows = rows,
                         .cols = cols,
                         .tokens = tokens,
                         .order = order};
        if (refusal(s, a).empty()) f(s);
      }
    }
  }
}

/// The largest relative difference over ranks, bandwidths and passes.
double worst_difference(mask_kind mask, token_layout tokens, bool ring_only = false) {
  double worst = 0;
  for (const int ranks : {1, 2, 4, 6, 9, 16}) {
    for (const auto* bandwidth : {"5 GB/s", "50 GB/s", "500 GB/s"}) {
      const auto c = star(ranks, bandwidth);
      const attention a{
          .heads = 8, .kv_heads = 2, .head_dim = 128, .sequence = ranks * 4096, .mask = mask};
      for_each_strategy(ranks, tokens, a, [&](const strategy& s) {
        if (ring_only && s.schedule != "ring") return;
        for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
          if (!has_pass(s, pass)) continue;
          const placed_schedule i(c, a, s, pass);
          const double simulated = simulate(i).duration().value();
          worst = std::max(worst, std::abs(simulated / estimate(i).time.value() - 1));
        }
      });
    }
  }
  return worst;
}

// Ranks alike: every schedule, grid and pass.
TEST(analytic, is_exact_where_ranks_are_alike) {
  EXPECT_LT(worst_difference(mask_kind::full, token_layout::contiguous), 1e-3);
  EXPECT_LT(worst_difference(mask_kind::causal, token_layout::striped), 1e-3);
}

// In a ring the busiest rank sets the pace whatever the others have to do.
TEST(analytic, is_exact_for_causal_rings_of_any_layout) {
  EXPECT_LT(worst_difference(mask_kind::causal, token_layout::zigzag, true), 1e-3);
  EXPECT_LT(worst_difference(mask_kind::causal, token_layout::contiguous, true), 1e-3);
}

// On grids the rows and columns of such layouts differ, and following one rank is an estimate.
TEST(analytic, is_close_for_uneven_layouts_on_grids) {
  EXPECT_LT(worst_difference(mask_kind::causal, token_layout::zigzag), 0.05);
  EXPECT_LT(worst_difference(mask_kind::causal, token_layout::contiguous), 0.35);
}

}  // namespace analytic_agreement_test
}  // namespace attnsim
