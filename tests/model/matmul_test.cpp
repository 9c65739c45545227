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

TEST(product_time, of_part_of_a_wave_takes_narrower_tiles) {
  // 110 tiles: 2 waves; of 440 quarter tiles 5, of halves of their loops 9
  EXPECT_NEAR(product_time(round_device(), {1281, 2560, 1000}, product_type::half).value(),
              9 * 13.1072e-6 / 8, 1e-12);
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
