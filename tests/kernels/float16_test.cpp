#include "kernels/float16.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace attnsim::kernels {
namespace float16_test {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
std::uint16_t bits_of(T value) {
  return std::bit_cast<std::uint16_t>(value);
}

TEST(bf16, values_on_paper) {
  EXPECT_EQ(bits_of(bf16(1.0f)), 0x3f80);
  EXPECT_EQ(bits_of(bf16(-2.0f)), 0xc000);
  // 1 + 2^-8 lies halfway between 1 and 1 + 2^-7, 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6.
  EXPECT_EQ(float{bf16(1 + 0x1p-8f)}, 1);
  EXPECT_EQ(float{bf16(1 + 3 * 0x1p-8f)}, 1 + 0x1p-6f);
  EXPECT_EQ(float{bf16(std::numeric_limits<float>::max())}, infinity);
  EXPECT_TRUE(std::isnan(float{bf16(nan)}));
}

TEST(fp16, values_on_paper) {
  EXPECT_EQ(bits_of(fp16(1.0f)), 0x3c00);
  EXPECT_EQ(bits_of(fp16(-2.0f)), 0xc000);
  EXPECT_EQ(float{fp16(65504.0f)}, 65504);
  EXPECT_EQ(float{fp16(65519.0f)}, 65504);
  EXPECT_EQ(float{fp16(65520.0f)}, infinity);
  EXPECT_EQ(float{fp16(0x1p-24f)}, 0x1p-24f);
  EXPECT_EQ(float{fp16(0x1p-25f)}, 0);
  EXPECT_EQ(bits_of(fp16(-0.0f)), 0x8000);
  EXPECT_TRUE(std::isnan(float{fp16(nan)}));
}

static_assert(sizeof(bf16) == 2 && sizeof(fp16) == 2);

}  // namespace float16_test
}  // namespace attnsim::kernels
