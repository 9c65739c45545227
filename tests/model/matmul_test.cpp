#include "model/cost/matmul.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace attnsim {
namespace {

/// 100 multiprocessors that multiply at 500 TFLOP/s together, 1000 in fp8.
device_profile round_device() {
  device_profile d;
  d.peak_half = flop_rate(1000e12);
  d.peak_fp8 = flop_rate(2000e12);
  d.memory_bandwidth = bandwidth(1e30);
  d.multiprocessors = 100;
  d.matmul = {.half = 0.5, .fp8 = 0.5, .rows = 128, .cols = 256};
  return d;
}

/// Of multiprocessors that have all the power: 1.41 times the 500 TFLOP/s that they sustain.
const double alone = std::sqrt(2) * 500e12;

TEST(product_time, of_whole_waves_is_operations_over_the_highest_rate) {
  const matrix_product p{1280, 2560, 1000};
  EXPECT_NEAR(product_time(round_device(), p, product_type::half).value(),
              p.operations().value() / 500e12, 1e-14);
  EXPECT_NEAR(product_time(round_device(), p, product_type::fp8).value(),
              p.operations().value() / 1000e12, 1e-14);
}

/// 99 tiles of 128 x 256 and one multiprocessor that waits: only what multiplies draws power.
TEST(product_time, of_part_of_a_wave_waits_at_a_higher_clock) {
  const double tile = 2.0 * 128 * 256 * 1000;
  EXPECT_NEAR(product_time(round_device(), {9 * 128, 11 * 256, 1000}, product_type::half).value(),
              std::hypot(100 * tile / alone, 99 * tile / alone), 1e-14);
}

/// 77 tiles of 128 x 256 would leave multiprocessors waiting for long. 98 of 192 x 128, 3/4 as large, do not.
TEST(product_time, takes_other_tiles_for_part_of_a_wave) {
  const double tile = 2.0 * 192 * 128 * 1000;
  EXPECT_NEAR(product_time(round_device(), {7 * 192, 14 * 128, 1000}, product_type::half).value(),
              std::hypot(100 * tile / alone, 98 * tile / alone), 1e-14);
}

/// One of 64 x 64 multiplies 32 times what it loads, the profile's 85.3 times: 0.6 x 85.3 / 32 times as long as its operations say.
TEST(product_time, of_a_small_tile_is_what_it_loads) {
  auto d = round_device();
  d.kernel_launch = seconds(1e-6);  // more than sharing larger tiles would save
  const double operations = 2.0 * 640 * 640 * 1000;
  const double loop = operations / alone * 0.6 * (128.0 * 256 / 384) / 32;
  EXPECT_NEAR(product_time(d, {640, 640, 1000}, product_type::half).value(),
              std::hypot(1e-6 + loop, operations / alone), 1e-14);
}

/// A tile of 64 x 64 by eight multiprocessors of the 100; one kernel more writes and reads their sums.
TEST(product_time, of_few_tiles_is_shared) {
  auto d = round_device();
  const matrix_product p{64, 64, 1e6};
  const double one = 2.0 * 64 * 64 * 1e6 / alone;
  const double waits = 100 * 0.6 * (128.0 * 256 / 384) / 32;
  const double shared = one * std::hypot(waits / 8, 1);
  EXPECT_NEAR(product_time(d, p, product_type::half).value(), shared, 1e-12);
  d.memory_bandwidth = bandwidth(1e15);
  d.memory_efficiency = 1;
  EXPECT_NEAR(product_time(d, p, product_type::half).value(), shared + 2 * 8 * 4.0 * 64 * 64 / 1e15,
              1e-12);
}

TEST(time_from_idle, is_shorter_until_clocks_settle) {
  const matmul_profile m{.boost = 1.25, .boost_time = seconds(0.04)};
  EXPECT_DOUBLE_EQ(time_from_idle(m, seconds(0.025)).value(), 0.02);
  EXPECT_DOUBLE_EQ(time_from_idle(m, seconds(1)).value(), 0.99);
  EXPECT_EQ(time_from_idle({}, seconds(1)), seconds(1));
}

/// Of the wave and of the call: twice 500 numbers beside 1000 of the loop, or 1000 beside 1000 of fp8.
TEST(product_time, of_short_loops_is_their_beginning_and_end_too) {
  auto d = round_device();
  d.matmul.depth = 500;
  const matrix_product p{1280, 2560, 1000};
  EXPECT_NEAR(product_time(d, p, product_type::half).value(),
              p.operations().value() / alone * std::hypot(2, 1), 1e-14);
  EXPECT_NEAR(product_time(d, p, product_type::fp8).value(),
              p.operations().value() / (2 * alone) * std::hypot(3, 1), 1e-14);
}

/// Added to in fp32: 8 bytes a number are read and written, beside its operations.
TEST(product_time, of_a_sum_in_fp32_writes_more) {
  auto d = round_device();
  d.memory_bandwidth = bandwidth(1e13);
  const matrix_product p{1280, 2560, 100000, 1, 8};
  const double operations = p.operations().value() / alone, results = 8.0 * 1280 * 2560 / 1e13;
  EXPECT_NEAR(product_time(d, p, product_type::half).value(),
              std::hypot(operations, operations + results), 1e-14);
}

TEST(product_time, of_few_rows_is_the_memory_s) {
  auto d = round_device();
  d.memory_bandwidth = bandwidth(1e11);
  d.memory_efficiency = 0.5;
  d.kernel_launch = seconds(1);
  const matrix_product p{1, 1000, 1000};
  EXPECT_DOUBLE_EQ(product_time(d, p, product_type::half).value(), 1 + 2 * 1002000.0 / 0.5e11);
}

TEST(product_time, of_groups_is_one_call) {
  // 50 tiles a product
  EXPECT_DOUBLE_EQ(product_time(round_device(), {640, 2560, 1000, 2}, product_type::half).value(),
                   product_time(round_device(), {1280, 2560, 1000}, product_type::half).value());
}

TEST(product_time, of_nothing_is_nothing) {
  EXPECT_EQ(product_time(round_device(), {0, 10, 10}, product_type::half), seconds());
}

TEST(product_time, without_fp8_is_that_of_half) {
  auto d = round_device();
  d.peak_fp8 = {};
  const matrix_product p{1280, 2560, 1000};
  EXPECT_EQ(product_time(d, p, product_type::fp8), product_time(d, p, product_type::half));
}

}  // namespace
}  // namespace attnsim
