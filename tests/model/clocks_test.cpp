#include "model/cost/clocks.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace attnsim {
namespace {

/// Products take 4,800 W beyond idle at the highest clock: 600, as the limit lets them, at half of it, and 1,200 at cbrt(1/4).
constexpr power_profile round_card{.limit = watts(700),
                                   .idle = watts(100),
                                   .brake = watts(1300),
                                   .products = watts(4900),
                                   .memory = watts(400)};
const double braked = std::cbrt(0.25);

TEST(shared_clock, of_products_alone_takes_the_limit) {
  const powered_time alone[] = {{round_card.products, seconds(3)}};
  EXPECT_NEAR(shared_clock(round_card, alone), 0.5, 1e-9);
  EXPECT_NEAR(products_slowdown_alone(round_card), braked / 0.5, 1e-9);
}

TEST(shared_clock, is_higher_among_what_takes_less) {
  // At 0.6: 100 + 4800 x 0.216 = 1136.8 W for braked / 0.6 s, 436.8 W too much; 300 W are spare while the memory is waited for.
  const powered_time products[] = {{round_card.products, seconds(1)}};
  EXPECT_NEAR(shared_clock(round_card, products, seconds(436.8 * braked / 0.6 / 300)), 0.6, 1e-9);
  // A kernel of 1,100 W takes 316 there, 384 W are spare, for 1 / 0.6 s each second that it takes at the highest clock.
  const powered_time both[] = {{round_card.products, seconds(1)},
                               {watts(1100), seconds(436.8 * braked / 384)}};
  EXPECT_NEAR(shared_clock(round_card, both), 0.6, 1e-9);
}

TEST(shared_clock, is_the_highest_where_the_limit_is_not_met) {
  const powered_time cool[] = {{watts(650), seconds(1)}};
  EXPECT_EQ(shared_clock(round_card, cool), 1);
  EXPECT_EQ(shared_clock(round_card, {}, seconds(1)), 1);
}

TEST(own_clock, is_never_above_the_brake) {
  EXPECT_NEAR(own_clock(round_card, round_card.products), braked, 1e-12);
  EXPECT_EQ(own_clock(round_card, round_card.products, 0.6), 0.6);
  EXPECT_EQ(own_clock(round_card, watts(1200)), 1);
  EXPECT_EQ(slowdown_at(round_card, round_card.products, 0.9), 1);
  EXPECT_DOUBLE_EQ(slowdown_at(round_card, watts(1200), 0.8), 1.25);
}

TEST(products_slowdown_alone, is_none_where_nobody_measured) {
  EXPECT_EQ(products_slowdown_alone({}), 1);
}

}  // namespace
}  // namespace attnsim
