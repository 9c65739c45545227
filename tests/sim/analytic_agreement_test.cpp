// Simulation against closed form on networks without contention and without fixed costs.
#include <gtest/gtest.h>

#include "model/analytic.hpp"
#include "model/schedules/schedules.hpp"
#include "sim/simulator.hpp"

namespace attnsim {
namespace {

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

TEST(analytic, agrees_with_simulation_without_contention) {
  double worst = 0;
  for (const int ranks : {1, 4, 6, 9, 16}) {
    for (const auto* bandwidth : {"5 GB/s", "50 GB/s", "500 GB/s"}) {
      const auto c = star(ranks, bandwidth);
      for (const auto mask : {mask_kind::full, mask_kind::causal}) {
        for (const auto tokens :
             {token_layout::contiguous, token_layout::zigzag, token_layout::striped}) {
          const attention a{
              .heads = 8, .kv_heads = 2, .head_dim = 128, .sequence = ranks * 4096, .mask = mask};
          for (const auto& algorithm : algorithms()) {
            for (const auto& [rows, cols] : grids_of(ranks)) {
              for (const auto order : {kv_order::direct, kv_order::transposed}) {
                const strategy s{.schedule = std::string(algorithm.name),
                                 .rows = rows,
                                 .cols = cols,
                                 .tokens = tokens,
                                 .order = order};
                if (!algorithm.refusal(s, a).empty()) continue;
                for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
                  const instance i(c, a, s, pass);
                  const double simulated = simulate(i).duration().value();
                  const double formula = estimate(i).time.value();
                  const double error = std::abs(simulated / formula - 1);
                  worst = std::max(worst, error);
                  EXPECT_LT(error, 1e-3)
                      << s.schedule << " " << rows << "x" << cols << " " << name_of(pass) << " "
                      << name_of(tokens) << " " << name_of(mask) << " " << name_of(order) << " "
                      << bandwidth << " " << simulated << " " << formula;
                }
              }
            }
          }
        }
      }
    }
  }
  RecordProperty("worst", std::to_string(worst));
}

}  // namespace
}  // namespace attnsim
