#include "model/cost/matmul.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace {

/// 100 multiprocessors that multiply at 500 TFLOP/s together, 1000 in fp8.
device_profile round_device() {
  device_profile d;
  d.peak_half = flop_rate(1000e12);
  d.peak_fp8 = flop_rate(2000e12);
  d.memory_bandwidth = bandwidth(1e15);
  d.multiprocessors = 100;
  d.matmul = {.half = 0.5, .fp8 = 0.5, .rows = 128, .cols = 256};
  return d;
}

TEST(product_time, of_whole_waves_is_operations_over_the_highest_rate) {
  const matrix_product p{1280, 2560, 1000};
  EXPECT_DOUBLE_EQ(product_time(round_device(), p, product_type::half).value(),
                   p.operations().value() / 500e12);
  EXPECT_DOUBLE_EQ(product_time(round_device(), p, product_type::fp8).value(),
                   p.operations().value() / 1000e12);
}

/// 110 tiles would be 2 waves. 98 tiles of 192 x 160 are one, of 0.9375 of the area; their edges are as long as those of 174.5 square.
TEST(product_time, of_part_of_a_wave_takes_other_tiles) {
  constexpr double full = 2 * 128 * 256 * 1000 / 5e12;
  const double edges = (1.0 / 192 + 1.0 / 160) / (1.0 / 128 + 1.0 / 256);
  EXPECT_NEAR(product_time(round_device(), {1281, 2240, 1000}, product_type::half).value(),
              0.9375 * full * (1 + 0.04 * (edges - 1)), 1e-12);
}

TEST(time_from_idle, is_shorter_until_clocks_settle) {
  const matmul_profile m{.boost = 1.25, .boost_time = seconds(0.04)};
  EXPECT_DOUBLE_EQ(time_from_idle(m, seconds(0.025)).value(), 0.02);
  EXPECT_DOUBLE_EQ(time_from_idle(m, seconds(1)).value(), 0.99);
  EXPECT_EQ(time_from_idle({}, seconds(1)), seconds(1));
}

TEST(product_time, of_short_loops_is_their_beginning_and_end_too) {
  auto d = round_device();
  d.matmul.depth = 1000;
  const matrix_product p{1280, 2560, 1000};
  EXPECT_DOUBLE_EQ(product_time(d, p, product_type::half).value(),
                   2 * p.operations().value() / 500e12);
  EXPECT_DOUBLE_EQ(product_time(d, p, product_type::fp8).value(),
                   3 * p.operations().value() / 1000e12);
}

/// Added to in fp32: 8 bytes a number are read and written, 4 times as many as of bf16.
TEST(product_time, of_a_sum_in_fp32_takes_longer_to_end) {
  auto d = round_device();
  d.matmul.depth = 250;
  const matrix_product p{1280, 2560, 1000, 1, 8};
  EXPECT_DOUBLE_EQ(product_time(d, p, product_type::half).value(),
                   2 * p.operations().value() / 500e12);
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
