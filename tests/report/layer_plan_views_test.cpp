#include "report/layer_plan_views.hpp"

#include <gtest/gtest.h>

namespace attnsim::report {
namespace {

ask::layer_plan of_kind(layer_kind kind, std::int64_t layers, const char* schedule, double time) {
  ask::layer_plan one{.kind = kind, .layers = layers};
  one.best.chosen = {.schedule = schedule, .rows = 8, .cols = 1};
  one.best.chosen.tokens = token_layout::zigzag;
  one.best.time = seconds(time);
  one.unbound = one.best;
  return one;
}

ask::layer_plans two_kinds() {
  return {
      {of_kind(layer_kind::full, 2, "ring", 3), of_kind(layer_kind::window, 4, "allgather", 1)}};
}

TEST(layer_plan_views, a_row_a_kind_and_the_sum) {
  auto plans = two_kinds();
  EXPECT_EQ(to_table(plans),
            "layers  of them  schedule   grid  tokens  placement   time a layer\n"
            "full          2  ring        8x1  zigzag  node-major       3.000 s\n"
            "window        4  allgather   8x1  zigzag  node-major       1.000 s\n"
            "6 layers: 10.00 s\n");
  plans.kinds[1].unbound.chosen = {.schedule = "halo", .rows = 8, .cols = 1};
  plans.kinds[1].unbound.chosen.tokens = token_layout::contiguous;
  plans.kinds[1].unbound.time = seconds(0.5);
  EXPECT_TRUE(to_table(plans).ends_with(
      "6 layers: 10.00 s\n8.000 s with tokens as each kind likes them (full: ring 8x1, zigzag "
      "tokens, node-major, window: halo 8x1, contiguous tokens, node-major), without what moves "
      "them between layers\n"))
      << to_table(plans);
}

TEST(layer_plan_views, as_json_and_csv) {
  const auto json = to_json(two_kinds());
  EXPECT_EQ(json["schema"], "attnsim.layers.1");
  EXPECT_EQ(json["time_s"], 10.0);
  EXPECT_EQ(json["kinds"][1]["kind"], "window");
  EXPECT_EQ(json["kinds"][1]["layers"], 4);
  EXPECT_EQ(json["kinds"][1]["best"]["schedule"], "allgather");
  EXPECT_EQ(to_csv(two_kinds()),
            "kind,layers,schedule,grid,tokens,time_s\nfull,2,ring,8x1,zigzag,3\n"
            "window,4,allgather,8x1,zigzag,1\n");
}

}  // namespace
}  // namespace attnsim::report
