// The 16-bit types in which tensors are stored: Eigen's, bit-compatible with CUDA's __nv_bfloat16 and __half. They only
// convert here; arithmetic is fp32.
//
//          sign  exponent  fraction   rounding error     largest    subnormal below, in steps of
//   bf16      1         8         7   2^-8  = 0.39 %     3.39e38    2^-126           2^-133
//   fp16      1         5        10   2^-11 = 0.05 %       65504    2^-14            2^-24
//
// From fp32: to nearest, ties to even; too large becomes infinity; NaN stays NaN (quiet).
#pragma once

#include <Eigen/Core>

namespace attnsim::kernels {

using bf16 = Eigen::bfloat16;
using fp16 = Eigen::half;

}  // namespace attnsim::kernels
