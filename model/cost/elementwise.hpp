// What an elementwise operation of a layer reads and writes: bytes for each element of its result, 2 a bf16 number, 4 an fp32 one.
// A layer's list counts them (model/layer/layer.cpp), measurements are fitted to them (calibrate/elementwise_fit.cpp).
//
//                   fused: each input once, each result once          eager: each step by itself, norms and rotations in fp32
//   plain           one in, one out
//   norm            residual and branch in, their sum and its norm out
//   norm_gradient   sum, both gradients in, one out
//   rotation        one in, one out
//   gate            two in, one out
//   gate_gradient   the gradient and two in, two out
//   cast            bf16 in, fp32 out
//
// The order is that of elementwise_kind.
#pragma once

#include "model/cluster/device.hpp"

namespace attnsim {

struct elementwise_cost {
  elementwise_kind kind = elementwise_kind::plain;  ///< whose rate the fused kernel has
  int fused = 0;                                    ///< bytes
  int eager = 0;                                    ///< bytes
  int eager_kernels = 1;
};

inline constexpr int half_bytes = 2, single_bytes = 4;  ///< of a bf16 and of an fp32 number

inline constexpr elementwise_cost elementwise_costs[elementwise_kinds] = {
    {elementwise_kind::plain, 2 * half_bytes, 2 * half_bytes, 1},
    {elementwise_kind::norm, 4 * half_bytes, 36, 8},
    {elementwise_kind::norm_gradient, 4 * half_bytes, 60, 12},
    {elementwise_kind::rotation, 2 * half_bytes, 20, 6},
    {elementwise_kind::gate, 3 * half_bytes, 5 * half_bytes, 2},
    {elementwise_kind::gate_gradient, 5 * half_bytes, 9 * half_bytes, 4},
    {elementwise_kind::cast, half_bytes + single_bytes, half_bytes + single_bytes, 1},
};

constexpr const elementwise_cost& cost_of(elementwise_kind kind) {
  return elementwise_costs[static_cast<int>(kind)];
}

static_assert([] {
  for (int i = 0; i < elementwise_kinds; ++i) {
    if (elementwise_costs[i].kind != static_cast<elementwise_kind>(i)) return false;
  }
  return true;
}());

}  // namespace attnsim
