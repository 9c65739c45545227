#include "sim/kernel_run.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace attnsim {
namespace kernel_run_test {

constexpr picoseconds us = 1'000'000;

// 100 us at full speed. Half of it done, the rest takes 1.2 times as long: 50 + 60 us; after 30 of
// these, 25 us of work are left.
TEST(kernel_run, the_rest_runs_at_another_speed) {
  kernel_run k;
  k.begin(0, 7, 100e-6, 1, 1);
  EXPECT_EQ(k.end(), 100 * us);
  EXPECT_TRUE(k.slow_down(50 * us, 1.2));
  EXPECT_EQ(k.end(), 110 * us);
  EXPECT_TRUE(k.slow_down(80 * us, 1));
  EXPECT_EQ(k.end(), 105 * us);
}

// 120 us if the communication beside it goes on, 110 if that ends half-way, 100 as soon as it ends: 2 ps are for rounding.
TEST(kernel_run, it_does_not_end_before_its_least_end) {
  kernel_run k;
  k.begin(0, 7, 100e-6, 1, 1.2);
  EXPECT_EQ(k.least_end(), 100 * us - 2);
  EXPECT_TRUE(k.slow_down(60 * us, 1));
  EXPECT_EQ(k.end(), 110 * us);
  EXPECT_EQ(k.least_end(), 110 * us - 2);
}

TEST(kernel_run, the_same_speed_moves_nothing) {
  kernel_run k;
  EXPECT_FALSE(k.slow_down(0, 1.2));
  k.begin(0, 7, 100e-6, 1, 1.2);
  EXPECT_FALSE(k.slow_down(50 * us, 1.2));
}

// Four parts (calls or waves) of 25 us. Communication that was launched before the kernel and becomes ready with it
// runs beside it; else it gets the device at the end of the part in progress, also after the speed
// has changed: at 30 us, 20 us of the second part are left, which then take 40.
TEST(kernel_run, room_comes_with_the_end_of_a_part) {
  constexpr bool before = true, behind = false;
  kernel_run k;
  EXPECT_EQ(k.room(3 * us, behind), 3 * us);
  k.begin(0, 7, 100e-6, 4, 1);
  EXPECT_EQ(k.room(0, before), 0);
  EXPECT_EQ(k.room(0, behind), 25 * us);
  EXPECT_EQ(k.room(30 * us, before), 50 * us);
  EXPECT_EQ(k.room(30 * us, behind), 50 * us);
  EXPECT_TRUE(k.slow_down(30 * us, 2));
  EXPECT_EQ(k.room(30 * us, behind), 70 * us);
  k.stop();
  EXPECT_EQ(k.room(31 * us, behind), 31 * us);
}

// Else ranks that communication slows down differently would drift apart at two paces, one with each kind of kernel.
TEST(kernel_run, communication_adds_the_same_to_kernels_of_any_duration) {
  for (picoseconds beside = 1000; beside < 1100; ++beside) {
    std::vector<picoseconds> added;
    for (const double duration : {1e-6, 1.0000003e-6, 2.3456789012e-6}) {
      kernel_run k;
      k.begin(0, 0, duration, 1, 1.26);
      k.slow_down(beside, 1);
      added.push_back(k.end() - to_picoseconds(duration));
    }
    EXPECT_THAT(added, testing::Each(added.front())) << beside;
  }
}

}  // namespace kernel_run_test
}  // namespace attnsim
