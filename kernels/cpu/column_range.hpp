// The columns a mask shows to a row are consecutive, and move right with the row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/attention/block_mask.hpp"

namespace attnsim::kernels::cpu {

/// [begin, end); empty when end <= begin.
struct column_range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr bool empty() const { return end <= begin; }
  constexpr std::int64_t size() const { return empty() ? 0 : end - begin; }

  constexpr column_range intersect(const column_range& other) const {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};

/// Number of columns at positions up to `position`.
constexpr std::int64_t columns_up_to(std::int64_t position, const block_mask& mask,
                                     std::int64_t cols) {
  if (position < mask.key_first) return 0;
  return std::min((position - mask.key_first) / mask.key_stride + 1, cols);
}

/// The columns of [0, cols) that row `row` sees.
constexpr column_range visible_columns(const block_mask& mask, std::int64_t row,
                                       std::int64_t cols) {
  if (!mask.causal) return {0, cols};
  const std::int64_t position = mask.query_first + row * mask.query_stride;
  const std::int64_t hidden =
      mask.window == 0 ? 0 : columns_up_to(position - mask.window, mask, cols);
  return {hidden, columns_up_to(position, mask, cols)};
}

/// The columns of [0, cols) that any of the rows first, ..., last - 1 sees, and those between.
constexpr column_range visible_columns(const block_mask& mask, std::int64_t first,
                                       std::int64_t last, std::int64_t cols) {
  return {visible_columns(mask, first, cols).begin, visible_columns(mask, last - 1, cols).end};
}

}  // namespace attnsim::kernels::cpu
