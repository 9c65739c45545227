#include "kernels/float16.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

namespace attnsim::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
class float16 : public testing::Test {};
using storage_types = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(float16, storage_types);

template <typename T>
T from_bits(std::uint32_t bits) {
  T result;
  result.bits = static_cast<std::uint16_t>(bits);
  return result;
}

TYPED_TEST(float16, every_value_survives_the_round_trip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_bits<TypeParam>(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float{TypeParam(value)})) << bits;
    } else {
      EXPECT_EQ(TypeParam(value).bits, bits);
    }
  }
}

TYPED_TEST(float16, rounds_to_the_nearest_of_neighbours_and_ties_to_even) {
  const std::uint32_t largest = TypeParam(infinity).bits - 1u;
  for (std::uint32_t bits = 0; bits < largest; ++bits) {
    const float low = from_bits<TypeParam>(bits);
    const float high = from_bits<TypeParam>(bits + 1);
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(TypeParam(middle).bits, bits + bits % 2) << low;
    ASSERT_EQ(TypeParam(std::nextafter(middle, low)).bits, bits) << low;
    ASSERT_EQ(TypeParam(std::nextafter(middle, high)).bits, bits + 1) << low;
    ASSERT_EQ(TypeParam(-middle).bits, 0x8000u + bits + bits % 2) << low;
  }
}

TEST(bf16, values_on_paper) {
  EXPECT_EQ(bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(bf16(-2.0f).bits, 0xc000);
  // 1 + 2^-8 lies halfway between 1 and 1 + 2^-7, 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6.
  EXPECT_EQ(float{bf16(1 + 0x1p-8f)}, 1);
  EXPECT_EQ(float{bf16(1 + 3 * 0x1p-8f)}, 1 + 0x1p-6f);
  EXPECT_EQ(float{bf16(std::numeric_limits<float>::max())}, infinity);
  EXPECT_TRUE(std::isnan(float{bf16(nan)}));
}

TEST(fp16, values_on_paper) {
  EXPECT_EQ(fp16(1.0f).bits, 0x3c00);
  EXPECT_EQ(fp16(-2.0f).bits, 0xc000);
  EXPECT_EQ(float{fp16(65504.0f)}, 65504);
  EXPECT_EQ(float{fp16(65519.0f)}, 65504);
  EXPECT_EQ(float{fp16(65520.0f)}, infinity);
  EXPECT_EQ(float{fp16(0x1p-24f)}, 0x1p-24f);
  EXPECT_EQ(float{fp16(0x1p-25f)}, 0);
  EXPECT_EQ(fp16(-0.0f).bits, 0x8000);
  EXPECT_TRUE(std::isnan(float{fp16(nan)}));
}

static_assert(sizeof(bf16) == 2 && sizeof(fp16) == 2);

}  // namespace
}  // namespace attnsim::kernels
