#include "model/attention/block_mask.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace attnsim {
namespace {

using wide = __int128;

std::int64_t floor_div(std::int64_t numerator, std::int64_t positive_divisor) {
  const auto quotient = numerator / positive_divisor;
  return quotient - (numerator % positive_divisor < 0);
}

wide ceil_div(wide numerator, wide positive_divisor) {
  const wide quotient = numerator / positive_divisor;
  return quotient + (numerator % positive_divisor > 0);
}

/// sum over i in [0, n) of floor((slope * i + offset) / divisor), all arguments non-negative. Each
/// turn takes out the whole parts and exchanges the axes of the remaining lattice triangle, as
/// Euclid's algorithm does.
wide floor_sum(wide n, wide slope, wide offset, wide divisor) {
  wide sum = 0;
  while (n > 0) {
    sum += n * (n - 1) / 2 * (slope / divisor) + n * (offset / divisor);
    slope %= divisor;
    offset %= divisor;
    const wide top = slope * n + offset;
    n = top / divisor;
    offset = top % divisor;
    std::swap(slope, divisor);
  }
  return sum;
}

/// Pairs with key position <= query position - distance where both strides are equal: row i has clamp(i + lag + 1, 0, cols).
std::int64_t pairs_behind_alike(const block_mask& mask, std::int64_t distance, std::int64_t rows,
                                std::int64_t cols) {
  const auto lag = floor_div(mask.query_first - mask.key_first - distance, mask.query_stride);
  const auto first = std::clamp<std::int64_t>(-lag, 0, rows);
  const auto full = std::clamp(cols - 1 - lag, first, rows);
  const auto partial = full - first;
  return partial * (lag + 1) + partial * (first + full - 1) / 2 + (rows - full) * cols;
}

/// Pairs with key position <= query position - distance. Row i has clamp(floor((slope * i + offset)
/// / divisor) + 1, 0, cols) of them: none before row `first`, all from row `full` on.
wide pairs_behind(const block_mask& mask, std::int64_t distance, std::int64_t rows,
                  std::int64_t cols) {
  constexpr std::int64_t small = std::int64_t{1} << 30;  // products fit 64 bits
  if (mask.query_stride == mask.key_stride && rows <= small && cols <= small)
    return pairs_behind_alike(mask, distance, rows, cols);
  const wide slope = mask.query_stride;
  const wide divisor = mask.key_stride;
  const wide offset = wide{mask.query_first} - mask.key_first - distance;
  const wide first = std::clamp<wide>(ceil_div(-offset, slope), 0, rows);
  const wide full = std::clamp<wide>(ceil_div((cols - 1) * divisor - offset, slope), first, rows);
  const wide partial = full - first;
  return floor_sum(partial, slope, slope * first + offset, divisor) + partial +
         (rows - full) * cols;
}

}  // namespace

void check(const block_mask& mask) {
  for (const auto stride : {mask.query_stride, mask.key_stride}) {
    if (stride < 1)
      throw std::invalid_argument(fmt::format("block mask: stride {} is not positive", stride));
  }
  if (mask.window < 0)
    throw std::invalid_argument(fmt::format("block mask: window {} is negative", mask.window));
}

std::int64_t visible_pairs(const block_mask& mask, std::int64_t rows, std::int64_t cols) {
  if (rows <= 0 || cols <= 0) return 0;
  check(mask);
  wide pairs = wide{rows} * cols;
  if (mask.causal) {
    pairs = pairs_behind(mask, 0, rows, cols);
    if (mask.window > 0) pairs -= pairs_behind(mask, mask.window, rows, cols);
  }
  if (pairs > std::numeric_limits<std::int64_t>::max()) {
    throw std::overflow_error(
        fmt::format("block mask: {} x {} tokens have 2^63 visible pairs or more", rows, cols));
  }
  return static_cast<std::int64_t>(pairs);
}

}  // namespace attnsim
