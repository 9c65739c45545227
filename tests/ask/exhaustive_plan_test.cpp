#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ask/planner.hpp"

namespace attnsim {
namespace exhaustive_plan_test {

// Pruning must not lose the best: compared with simulating every candidate, where transfers take as long as computation
// and where they hardly count.
TEST(exhaustive_plan, is_what_the_pruned_search_finds) {
  for (const auto* name : {"nd-h100-v5", "nd-a100-v4", "nc-h100-v5"}) {
    const auto c = read_cluster(name, {.nodes = std::string(name) == "nc-h100-v5" ? 16 : 2});
    for (const auto& [sequence, kv_heads] : {std::pair(16384, 32), std::pair(262144, 4)}) {
      const plan_request request{
          .problem = {.heads = 32, .kv_heads = kv_heads, .sequence = sequence}, .ranks = 16};
      const auto pruned = plan(c, request);
      const auto exhaustive = plan(c, attnsim::exhaustive(request));
      ASSERT_FALSE(pruned.candidates.empty());
      EXPECT_LE(pruned.simulated, exhaustive.simulated / 2);
      EXPECT_LE(pruned.candidates[0].time.value(), exhaustive.candidates[0].time.value() * 1.005)
          << name << " " << sequence << " " << kv_heads << " pruned "
          << pruned.candidates[0].chosen.schedule << " exhaustive "
          << exhaustive.candidates[0].chosen.schedule << " " << exhaustive.candidates[0].chosen.rows
          << "x" << exhaustive.candidates[0].chosen.cols;
      // What only the exhaustive search simulates takes longer than the bound of all that the other one did not.
      for (const auto& p : exhaustive.candidates) {
        const bool known =
            std::any_of(pruned.candidates.begin(), pruned.candidates.end(),
                        [&](const prediction& other) { return other.time == p.time; });
        EXPECT_TRUE(known || p.time >= pruned.others_at_least) << p.chosen.schedule;
      }
      EXPECT_GT(pruned.others_at_least.value(), pruned.candidates[0].time.value() / 3);
      EXPECT_TRUE(std::isinf(exhaustive.others_at_least.value()));
    }
  }
}

}  // namespace exhaustive_plan_test
}  // namespace attnsim
