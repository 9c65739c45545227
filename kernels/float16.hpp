// The 16-bit storage types, bit-compatible with CUDA's __nv_bfloat16 and __half. They only convert;
// arithmetic is fp32.
//
//          sign  exponent  fraction   rounding error     largest    subnormal below, in steps of
//   bf16      1         8         7   2^-8  = 0.39 %     3.39e38    2^-126           2^-133
//   fp16      1         5        10   2^-11 = 0.05 %       65504    2^-14            2^-24
//
// From fp32: to nearest, ties to even; too large becomes infinity; NaN stays NaN (quiet).
#pragma once

#include <bit>
#include <cstdint>

namespace attnsim::kernels {

struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  constexpr explicit bf16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (word + 0x7fffu + (word >> 16 & 1u)) >> 16;
    bits = static_cast<std::uint16_t>(value == value ? rounded : (word >> 16 | 0x40u));
  }
  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

struct fp16 {
  std::uint16_t bits = 0;

  fp16() = default;
  constexpr explicit fp16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = word & 0x7fffffffu;
    bits = static_cast<std::uint16_t>((word >> 16 & 0x8000u) | round(magnitude));
  }
  constexpr operator float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
    const bool finite = magnitude < fp16_infinity << 13;
    const std::uint32_t word =
        finite ? std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f)
               : magnitude | fp32_infinity;
    return std::bit_cast<float>(sign | word);
  }

 private:
  static constexpr std::uint32_t fp16_infinity = 0x7c00;
  static constexpr std::uint32_t fp32_infinity = 0x7f800000;
  static constexpr std::uint32_t overflow = std::bit_cast<std::uint32_t>(65520.0f);
  static constexpr std::uint32_t smallest_normal = std::bit_cast<std::uint32_t>(0x1p-14f);
  static constexpr std::uint32_t exponent_shift = (127 - 15) << 23;

  static constexpr std::uint32_t round(std::uint32_t magnitude) {
    if (magnitude > fp32_infinity) return fp16_infinity | 0x200u;
    if (magnitude >= overflow) return fp16_infinity;
    if (magnitude < smallest_normal) {
      // One unit in the last place of 0.5f is the subnormals' step: the addition rounds.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
    }
    return (magnitude - exponent_shift + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  }
};

}  // namespace attnsim::kernels
