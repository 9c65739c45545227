// The 8-bit type of fp8 attention, OCP's e4m3 (Micikevicius et al., arXiv 2209.05433), bit-compatible with CUDA's __nv_fp8_e4m3.
// It only converts; arithmetic is fp32.
//
//          sign  exponent  fraction   rounding error     largest    subnormal below, in steps of
//   e4m3      1         4         3   2^-4  = 6.3 %          448    2^-6             2^-9
//
// From fp32: to nearest, ties to even; too large becomes the largest, infinity too; NaN stays NaN. There is no infinity.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace attnsim::kernels {

class e4m3 {
 public:
  e4m3() = default;
  explicit e4m3(float value) : bits_(rounded(value)) {}

  operator float() const {
    static const auto values = all();
    return values[bits_];
  }

 private:
  static constexpr int fraction_bits = 3, bias = 7, least_exponent = 1 - bias;
  static constexpr float largest = 448;
  static constexpr std::uint8_t sign_bit = 0x80, not_a_number = 0x7f;

  static std::uint8_t rounded(float value) {
    const std::uint8_t sign = std::signbit(value) ? sign_bit : 0;
    if (std::isnan(value)) return sign | not_a_number;
    const float magnitude = std::fabs(value);
    if (magnitude >= largest) return sign | (not_a_number - 1);
    int exponent = least_exponent;
    if (magnitude >= std::ldexp(1.0F, least_exponent)) exponent = std::ilogb(magnitude);
    const auto steps = static_cast<int>(
        std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent)));  // ties to even
    return static_cast<std::uint8_t>(sign |
                                     (((exponent - least_exponent) << fraction_bits) + steps));
  }

  static float value_of(int bits) {
    const int magnitude = bits & not_a_number;
    if (magnitude == not_a_number) return std::numeric_limits<float>::quiet_NaN();
    const int field = magnitude >> fraction_bits, fraction = magnitude & ((1 << fraction_bits) - 1);
    const int steps = field > 0 ? fraction + (1 << fraction_bits) : fraction;
    const float value = std::ldexp(static_cast<float>(steps),
                                   (field > 0 ? field - bias : least_exponent) - fraction_bits);
    return (bits & sign_bit) != 0 ? -value : value;
  }

  static std::array<float, 256> all() {
    std::array<float, 256> values{};
    for (int bits = 0; bits < 256; ++bits) values[static_cast<std::size_t>(bits)] = value_of(bits);
    return values;
  }

  std::uint8_t bits_;
};

}  // namespace attnsim::kernels
