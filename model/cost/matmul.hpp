// Time of a matrix product, rows x inner times inner x cols, as cuBLASLt runs it: tiles of the result, one a multiprocessor at
// a time, in waves.
//
//   tiles      count x ceil(rows / tile rows) x ceil(cols / tile cols), waves = ceil(tiles / multiprocessors)
//   a wave     2 x tile rows x tile cols x inner operations, at 1.41 times the highest rate / multiprocessors; what begins and ends it
//   in waves   launch + (waves + 1) x begin + waves x a wave
//   sustained  operations of all tiles, at 1.41 times the highest rate; the result, at the memory's rate
//   computing  sqrt(in waves^2 + sustained^2)
//   moving     every operand read and the result written once, at the memory's rate
//   time       max(computing, launch + moving)
//
// Long loops in whole waves reach the highest rate, `half` or `fp8` of the peak (device.hpp, matmul_profile). Others come nearer to it, as
// clocks follow power: multiprocessors that wait leave the others a higher clock, up to 1.41 times as high (an H200: 0.71 of its peak). The
// tile that takes least is taken (cuBLASLt chooses), no larger than the profile's, half to twice as high, a quarter to as wide. A small one
// waits for what it loads, as one with 0.6 of what the profile's multiplies for each number loaded. Where some would have none, 2, 4
// or 8 multiprocessors share a tile's loop, and a kernel adds up their sums in fp32. `depth`: begin, in numbers of bf16 of the profile's
// tile's loop, twice as many of fp8. Chosen with 520 products of H200 known, held to others; sharing with 1,240 known (docs/steps.md).
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
