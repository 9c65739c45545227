#include "sim/clock.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace clock_test {

TEST(clock, rounds_to_the_nearest_picosecond) {
  EXPECT_EQ(to_picoseconds(1.4e-12), 1);
  EXPECT_EQ(to_picoseconds(1.6e-12), 2);
  EXPECT_EQ(to_picoseconds(-1.6e-12), -2);
  EXPECT_EQ(to_seconds(1'500'000'000'000), 1.5);
}

TEST(clock, ends_after_106_days) {
  EXPECT_LT(to_picoseconds(9.1e6), never);
  EXPECT_EQ(to_picoseconds(9.3e6), never);
  EXPECT_EQ(later(5, 7), 12);
  EXPECT_EQ(later(never - 8, 7), never - 1);
  EXPECT_EQ(later(never - 7, 7), never);
  EXPECT_EQ(later(to_picoseconds(9e6), to_picoseconds(9e6)), never);
  EXPECT_EQ(later(5, never), never);
  EXPECT_EQ(later(never, 5), never);
}

}  // namespace clock_test
}  // namespace attnsim
