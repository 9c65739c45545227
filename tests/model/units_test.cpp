#include "model/units.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/expect_error.hpp"

namespace attnsim {
namespace units_test {

TEST(units, parse_to_si) {
  EXPECT_DOUBLE_EQ(parse<seconds>("2 us").value(), 2e-6);
  EXPECT_DOUBLE_EQ(parse<seconds>("1.5ms").value(), 1.5e-3);
  EXPECT_EQ(parse<byte_count>("64 GiB").value(), 64ll << 30);
  EXPECT_EQ(parse<byte_count>("1 GB").value(), 1000000000);
  EXPECT_DOUBLE_EQ(parse<bandwidth>("400 Gb/s").value(), 50e9);
  EXPECT_DOUBLE_EQ(parse<bandwidth>("50 GB/s").value(), 50e9);
  EXPECT_DOUBLE_EQ(parse<bandwidth>("1 GiB/s").value(), 1073741824.0);
  EXPECT_DOUBLE_EQ(parse<flop_rate>("989.4 TFLOP/s").value(), 989.4e12);
  EXPECT_DOUBLE_EQ(parse<watts>("0.7 kW").value(), 700);
}

TEST(units, refuse_other_dimensions_and_nonsense) {
  EXPECT_ERROR(parse<bandwidth>("400 Gb"), std::invalid_argument,
               "expected a bandwidth with its unit, such as '400 Gb/s' or '50 GB/s'");
  EXPECT_ERROR(parse<seconds>("2"), std::invalid_argument,
               "expected a time with its unit, such as '2 us'");
  EXPECT_ERROR(parse<seconds>("inf s"), std::invalid_argument,
               "expected a time with its unit, such as '2 us'");
  EXPECT_ERROR(parse<byte_count>("GiB"), std::invalid_argument,
               "expected a size with its unit, such as '64 GiB'");
  EXPECT_ERROR(parse<byte_count>("1e30 TiB"), std::invalid_argument,
               "expected a size with its unit, such as '64 GiB'");
  EXPECT_ERROR(parse<watts>("700"), std::invalid_argument,
               "expected a power with its unit, such as '700 W'");
  EXPECT_ERROR(parse<flop_rate>(""), std::invalid_argument,
               "expected a rate with its unit, such as '989 TFLOP/s'");
}

TEST(units, print_four_digits_with_unit) {
  EXPECT_EQ(to_string(seconds(1.344177e-3)), "1.344 ms");
  EXPECT_EQ(to_string(seconds(0)), "0 ps");
  EXPECT_EQ(to_string(seconds(1)), "1.000 s");
  EXPECT_EQ(to_string(byte_count(64ll << 30)), "64.00 GiB");
  EXPECT_EQ(to_string(bandwidth(50e9)), "50.00 GB/s");
  EXPECT_EQ(to_string(flop_rate(989.4e12)), "989.4 TFLOP/s");
  EXPECT_EQ(to_string(watts(700)), "700.0 W");
}

TEST(units, printed_values_parse_back) {
  for (const double value : {1e-12, 3.7e-7, 2.5e-3, 0.9999, 12.0, 999.9}) {
    EXPECT_NEAR(parse<seconds>(to_string(seconds(value))).value(), value, value * 1e-3);
  }
}

TEST(units, combine_by_dimension) {
  // 64 MiB at 50 GB/s.
  EXPECT_DOUBLE_EQ((byte_count(64 << 20) / bandwidth(50e9)).value(), 67108864.0 / 50e9);
  EXPECT_DOUBLE_EQ((flop_count(1e12) / flop_rate(2e12)).value(), 0.5);
}

}  // namespace units_test
}  // namespace attnsim
