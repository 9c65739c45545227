// Time of a matrix product, rows x inner times inner x cols, as cuBLASLt runs it: tiles of the result, one a multiprocessor at
// a time, in waves.
//
//   tiles      count x ceil(rows / tile rows) x ceil(cols / tile cols)
//   a tile     2 x tile rows x tile cols x (inner + depth) operations, at the device's highest rate / multiprocessors
//   computing  waves x a tile, waves = ceil(tiles / multiprocessors)
//   moving     every operand read and the result written once, at the memory's rate
//   time       launch + max(computing, moving)
//
// Where it is less, another shape of no larger area is taken, half to twice as high, a quarter to as wide (cuBLASLt chooses); its loop
// is longer, by 4 % of how much longer its edges are for the area. `depth`: what a tile's beginning and end take, in numbers of bf16
// for a result of bf16, in proportion to its bytes (8 of one in fp32 that is added to), twice as many of fp8. The highest rate is a
// share of the peak (device.hpp, matmul_profile). Fitted on one H200's 94 and 120 products, held to others (docs/trust.md).
#pragma once

#include "model/cluster/device.hpp"

namespace attnsim {

enum class product_type { half, fp8 };  ///< of the operands; fp8 adds up in fp32 and writes bf16

struct matrix_product {
  double rows = 0;
  double cols = 0;
  double inner = 0;
  double count = 1;         ///< equal products in one call (grouped, of experts)
  double result_bytes = 2;  ///< an element of the result, read too where it is added to

  flop_count operations() const { return flop_count(2 * rows * cols * inner * count); }
};

/// Of a device of full speed. Zero for an empty product. fp8 without a peak for it is as half.
seconds product_time(const device_profile&, const matrix_product&, product_type);

/// Of products one behind the other on a device that was idle, that take `settled` at settled clocks.
seconds time_from_idle(const matmul_profile&, seconds settled);

/// What the largest products reach.
flop_rate highest_product_rate(const device_profile&, product_type);

}  // namespace attnsim
