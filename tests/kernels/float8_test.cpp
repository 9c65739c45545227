#include "kernels/float8.hpp"

#include <gmock/gmock.h>

#include <bit>

namespace attnsim::kernels {
namespace float8_test {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::uint8_t bits_of(e4m3 value) {
  return std::bit_cast<std::uint8_t>(value);
}

e4m3 from_bits(int bits) {
  return std::bit_cast<e4m3>(static_cast<std::uint8_t>(bits));
}

TEST(e4m3, values_on_paper) {
  EXPECT_EQ(bits_of(e4m3(1.0f)), 0x38);
  EXPECT_EQ(bits_of(e4m3(-2.0f)), 0xc0);
  EXPECT_EQ(bits_of(e4m3(-0.0f)), 0x80);
  EXPECT_EQ(bits_of(e4m3(448.0f)), 0x7e);
  EXPECT_EQ(float{e4m3(0x1p-6f)}, 0x1p-6f);
  EXPECT_EQ(float{e4m3(0x1p-9f)}, 0x1p-9f);
}

// 1 + 2^-4 lies halfway between 1 and 1 + 2^-3, 1 + 3 x 2^-4 between 1 + 2^-3 and 1 + 2^-2; 15.5 x 2^-9 rounds up into the
// normal numbers, 15.5 to 16.
TEST(e4m3, rounds_to_nearest_ties_to_even) {
  EXPECT_EQ(float{e4m3(1 + 0x1p-4f)}, 1);
  EXPECT_EQ(float{e4m3(1 + 3 * 0x1p-4f)}, 1.25f);
  EXPECT_EQ(float{e4m3(1 + 0x1.1p-4f)}, 1.125f);
  EXPECT_EQ(float{e4m3(15.5f)}, 16);
  EXPECT_EQ(float{e4m3(7.5f * 0x1p-9f)}, 0x1p-6f);
  EXPECT_EQ(float{e4m3(0x1p-10f)}, 0);
  EXPECT_EQ(float{e4m3(0x1.8p-10f)}, 0x1p-9f);
}

TEST(e4m3, what_is_too_large_becomes_the_largest) {
  EXPECT_EQ(float{e4m3(1000.0f)}, 448);
  EXPECT_EQ(float{e4m3(-infinity)}, -448);
  EXPECT_EQ(bits_of(e4m3(nan)), 0x7f);
  EXPECT_TRUE(std::isnan(float{from_bits(0xff)}));
}

TEST(e4m3, every_value_stays_what_it_is) {
  float before = -infinity;
  for (int magnitude = 0x7e; magnitude > 0; --magnitude) {
    EXPECT_GT(float{from_bits(0x80 | magnitude)}, before);
    before = float{from_bits(0x80 | magnitude)};
  }
  for (int bits = 0; bits < 256; ++bits) {
    if (const float value = from_bits(bits); !std::isnan(value))
      EXPECT_EQ(bits_of(e4m3(value)), bits);
  }
}

static_assert(sizeof(e4m3) == 1);

}  // namespace float8_test
}  // namespace attnsim::kernels
