#include "ask/step_plan.hpp"

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace {

step_plan_request wanted_step(std::initializer_list<std::pair<const char*, const char*>> fields) {
  step_plan_request r;
  r.asked.base.cluster = "dgx-h100";
  set(r.asked, "nodes", "2");
  for (const auto& [name, text] : fields) set(r.asked, name, text);
  return r;
}

step_plan planned_step(const step_plan_request& r) {
  return plan(r, cluster_of(r.asked.base));
}

/// The exact search's winner is the exhaustive search's.
void expect_same_winner(const step_plan_request& r) {
  const auto found = planned_step(r), all = planned_step(exhaustive(r));
  ASSERT_FALSE(found.candidates.empty());
  EXPECT_EQ(found.candidates.front().time, all.candidates.front().time) << written(r.asked);
  EXPECT_EQ(found.considered, all.considered);
  EXPECT_LT(found.simulated, all.simulated);
}

TEST(step_plan, wins_as_exhaustive_search_does_on_sixteen_devices) {
  expect_same_winner(wanted_step({{"model", "llama2-7b"}, {"seq", "32K"}, {"global-batch", "16"}}));
  expect_same_winner(wanted_step({{"model", "llama3-8b"}, {"seq", "256K"}, {"global-batch", "2"}}));
  expect_same_winner(wanted_step(
      {{"model", "mixtral-8x7b"}, {"seq", "16K"}, {"global-batch", "16"}, {"recompute", "full"}}));
}

TEST(step_plan, wins_as_exhaustive_search_does_on_thirty_two) {
  expect_same_winner(wanted_step(
      {{"nodes", "4"}, {"model", "llama3-8b"}, {"seq", "128K"}, {"global-batch", "8"}}));
}

TEST(step_plan, keeps_what_is_given) {
  const auto p = planned_step(wanted_step({{"model", "llama2-7b"},
                                           {"seq", "64K"},
                                           {"global-batch", "4"},
                                           {"tp", "4"},
                                           {"recompute", "full"}}));
  for (const auto& a : p.candidates) {
    EXPECT_EQ(a.cut.tensor, 4);
    EXPECT_EQ(a.recompute, recomputation::full);
    EXPECT_TRUE(a.feasible);
  }
  for (std::size_t i = 1; i < p.candidates.size(); ++i)
    EXPECT_LE(p.candidates[i - 1].time, p.candidates[i].time);
}

TEST(step_plan, names_what_is_ruled_out_and_why) {
  const auto p =
      planned_step(wanted_step({{"model", "llama2-7b"}, {"seq", "512K"}, {"global-batch", "1"}}));
  std::size_t ruled_out = 0;
  for (const auto& r : p.rejected) ruled_out += r.candidates;
  EXPECT_THAT(p.rejected, testing::Contains(testing::Field(&ruled_out::reason, "out of memory")));
  EXPECT_GT(ruled_out, 0u);
}

TEST(step_plan, says_when_nothing_fits) {
  auto r = wanted_step({{"model", "llama3-405b"}, {"seq", "8K"}, {"global-batch", "16"}});
  try {
    planned_step(r);
    FAIL();
  } catch (const infeasible& e) {
    EXPECT_THAT(e.what(),
                testing::StartsWith("no step of llama3-405b on 16 ranks: out of memory ("));
  }
  set(r.asked, "tp", "3");
  EXPECT_ERROR(planned_step(r), infeasible,
               "no step of llama3-405b on 16 ranks: degrees that are asked for do not divide the "
               "ranks");
}

TEST(step_plan, ranks_steps_of_one_batch) {
  EXPECT_ERROR(planned_step(wanted_step({{"model", "llama2-7b"}, {"seq", "8K"}})), input_error,
               "global-batch: is required");
}

TEST(step_plan, of_a_prefill_recomputes_and_shards_nothing) {
  auto r = wanted_step(
      {{"model", "llama3-8b"}, {"seq", "128K"}, {"task", "prefill"}, {"global-batch", "1"}});
  const auto best = planned_step(r).candidates.front();
  EXPECT_EQ(best.recompute, recomputation::none);
  EXPECT_EQ(best.shard, sharding::none);
  EXPECT_EQ(best.cut.data, 1);
}

}  // namespace
}  // namespace attnsim::ask
