#include "model/cost/priced_schedule.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "model/cost/analytic.hpp"
#include "model/cost/memory.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"

namespace attnsim {
namespace priced_schedule_test {

constexpr attention layer{.heads = 16, .kv_heads = 4, .sequence = 16384};

/// One program on all placements of its grid, and each by itself.
void expect_equal_costs(const cluster& c, strategy s, pass_kind pass) {
  std::shared_ptr<const priced_schedule> shared;
  for (const auto& placement : distinct_placements(schedule_grid(s), c)) {
    s.placement = placement;
    const placed_schedule alone(c, layer, s, pass);
    if (!shared)
      shared = std::make_shared<const priced_schedule>(c.device, layer, s,
                                                       make_schedule(s, layer, pass));
    const placed_schedule one_of_several(placed_ranks(c, place(placement, schedule_grid(s), c)), s,
                                         shared);
    const auto wanted = estimate(alone), got = estimate(one_of_several);
    EXPECT_EQ(got.time, wanted.time) << s.schedule << " " << placement;
    EXPECT_EQ(got.rank, wanted.rank) << s.schedule << " " << placement;
    EXPECT_EQ(peak_memory(shared->work()).peak, peak_memory(alone.work()).peak) << s.schedule;
  }
}

TEST(priced_schedule, costs_the_same_wherever_its_ranks_are) {
  const auto c = read_cluster("nd-h100-v5", {.nodes = 2});
  for (const auto tokens : {token_layout::zigzag, token_layout::striped}) {
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      for (const char* schedule : {"attention2d", "attention2d-overlap", "double-ring"})
        expect_equal_costs(c, {.schedule = schedule, .rows = 4, .cols = 4, .tokens = tokens}, pass);
      expect_equal_costs(
          c, {.schedule = "usp", .rows = 4, .cols = 1, .ulysses = 4, .tokens = tokens}, pass);
    }
  }
}

TEST(informed, a_mesh_knows_what_a_block_costs_on_its_links) {
  const auto c = read_cluster("nd-h100-v5", {.nodes = 2});
  strategy s{.schedule = "mesh", .rows = 4, .cols = 4};
  const double within_a_node = informed(s, c, layer, pass_kind::forward).block_cost;
  s.placement = "rails";
  const double between_nodes = informed(s, c, layer, pass_kind::forward).block_cost;
  EXPECT_GT(within_a_node, between_nodes);
  EXPECT_GT(between_nodes, 0);
  s.schedule = "attention2d";
  EXPECT_EQ(informed(s, c, layer, pass_kind::forward).block_cost, 0);
}

}  // namespace priced_schedule_test
}  // namespace attnsim
