#include "validate/repeats.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace attnsim::validate {
namespace {

std::vector<seconds> milliseconds(const std::vector<double>& times) {
  std::vector<seconds> all;
  for (const double t : times) all.push_back(seconds(t * 1e-3));
  return all;
}

// Distances from 10 ms: 1, 1, 0, 2, 2, three quarters within 2. 1.645 x 1.25 x 0.87 x 2 / sqrt(5) / 10.
TEST(repeats, a_median_is_known_by_the_spread_of_its_runs) {
  EXPECT_NEAR(median_within(milliseconds({9, 11, 10, 8, 12})), 0.160007, 1e-6);
  EXPECT_EQ(median_within(milliseconds({10})), 0);
}

TEST(repeats, as_many_as_asked_for) {
  const repeats_wanted three{.runs = 3};
  EXPECT_FALSE(are_enough(milliseconds({}), three));
  EXPECT_FALSE(are_enough(milliseconds({1, 9}), three));
  EXPECT_TRUE(are_enough(milliseconds({1, 9, 5}), three));
  EXPECT_FALSE(stopped_early(milliseconds({1, 9, 5}), three));
}

TEST(repeats, until_the_median_is_known) {
  const repeats_wanted usual;
  EXPECT_FALSE(are_enough(milliseconds({}), usual));
  EXPECT_FALSE(are_enough(milliseconds({10, 10, 10, 10}), usual));
  EXPECT_TRUE(are_enough(milliseconds({10, 10, 10, 10, 10}), usual));
  EXPECT_FALSE(are_enough(milliseconds({9, 11, 10, 8, 12}), usual));
  EXPECT_FALSE(stopped_early(milliseconds({10, 10, 10, 10, 10}), usual));
}

TEST(repeats, or_until_they_take_too_long) {
  const repeats_wanted usual;
  EXPECT_TRUE(are_enough(milliseconds({5000}), usual));
  EXPECT_TRUE(stopped_early(milliseconds({5000}), usual));
  std::vector<double> wandering;
  for (int i = 0; i < 30; ++i) {
    EXPECT_FALSE(are_enough(milliseconds(wandering), usual));
    wandering.push_back(i % 2 == 0 ? 5 : 15);
  }
  EXPECT_TRUE(are_enough(milliseconds(wandering), usual));
  EXPECT_TRUE(stopped_early(milliseconds(wandering), usual));
}

}  // namespace
}  // namespace attnsim::validate
