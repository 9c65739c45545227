#include "ask/layer_plans.hpp"

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace {

question of_model(const char* model) {
  return {.cluster = "dgx-h100",
          .sequence = 131072,
          .model = model,
          .pass = pass_kind::forward,
          .by = prediction_method::analytic};
}

// 18 layers of each kind; windows of 128 tokens.
TEST(layer_plans, have_one_layout_and_the_best_schedule_of_each_kind) {
  const auto q = of_model("gpt-oss-120b");
  const auto plans = plan_each_kind(q, cluster_of(q), {"ring", "ulysses", "halo"});
  ASSERT_EQ(plans.kinds.size(), 2u);
  const auto &full = plans.kinds[0], &window = plans.kinds[1];
  EXPECT_EQ(full.kind, layer_kind::full);
  EXPECT_EQ(full.layers, 18);
  EXPECT_EQ(full.best.problem.window, 0);
  EXPECT_EQ(window.kind, layer_kind::window);
  EXPECT_EQ(window.layers, 18);
  EXPECT_EQ(window.best.problem.window, 128);
  EXPECT_EQ(full.best.chosen.tokens, window.best.chosen.tokens);
  EXPECT_EQ(window.unbound.chosen.schedule, "halo");
  EXPECT_EQ(plans.time(), 18.0 * full.best.time + 18.0 * window.best.time);
  EXPECT_LE(plans.unbound_time(), plans.time());
}

TEST(layer_plans, keep_the_layout_that_is_asked_for) {
  auto q = of_model("gpt-oss-120b");
  q.tokens = token_layout::zigzag;
  const auto plans = plan_each_kind(q, cluster_of(q), {"ring", "halo"});
  for (const auto& one : plans.kinds) {
    EXPECT_EQ(one.best.chosen.tokens, token_layout::zigzag);
    EXPECT_EQ(one.best.chosen.schedule, "ring");
  }
}

TEST(layer_plans, are_of_models_with_two_kinds) {
  for (const auto* model : {"llama3-8b", "llama4-scout"}) {
    const auto q = of_model(model);
    EXPECT_ERROR(plan_each_kind(q, cluster_of(q), {}), input_error,
                 std::string("model: '") + model + "': expected one with layers of two kinds");
  }
}

}  // namespace
}  // namespace attnsim::ask
