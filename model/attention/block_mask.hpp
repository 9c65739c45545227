// Which keys the rows of one attention block see. Blocks are cut out of a longer sequence: row i is the token at
// position query_first + i * query_stride, column j the token at key_first + j * key_stride. With a causal mask row i
// sees column j iff the key's position is not after the query's; with a sliding window of w it must also be one of the
// last w positions. The masks of real schedules are all of this form:
//   full             every key before every query           (causal = false)
//   causal           same tokens on both sides               0,1 / 0,1
//   strictly causal  keys one position later than queries    0,P / 1,P   (striped tokens, key chunk after query chunk)
//   offset causal    bottom-right aligned                    cols - rows,1 / 0,1
//   staircase        different strides                       r,1 / c,P   (attention2d on striped tokens)
#pragma once

#include <cstdint>

namespace attnsim {

struct block_mask {
  bool causal = false;
  std::int64_t query_first = 0;
  std::int64_t query_stride = 1;
  std::int64_t key_first = 0;
  std::int64_t key_stride = 1;
  std::int64_t window = 0;  ///< sliding window in tokens; 0: none

  friend bool operator==(const block_mask&, const block_mask&) = default;
};

/// Whether row i sees column j.
constexpr bool visible(const block_mask& mask, std::int64_t i, std::int64_t j) {
  if (!mask.causal) return true;
  const std::int64_t query = mask.query_first + i * mask.query_stride;
  const std::int64_t key = mask.key_first + j * mask.key_stride;
  return key <= query && (mask.window == 0 || key > query - mask.window);
}

/// Refuses strides below one and negative windows: std::invalid_argument.
void check(const block_mask& mask);

/// Number of visible (row, column) pairs of a rows x cols block: the block's work. O(log) by floor
/// sums, exact for positions up to 2^40; std::overflow_error if the number itself reaches 2^63.
std::int64_t visible_pairs(const block_mask& mask, std::int64_t rows, std::int64_t cols);

}  // namespace attnsim
