// Ranges of a block's tokens that repeat, and what attention between two such blocks need look at.
//
// A rank that gathered the zigzag chunks of a row has the same two ranges again and again: each time a chunk further in the
// sequence, one of them forwards, the other backwards, and a chunk further in memory. Most of these repeats see the same of
// another block. Of consecutive ones that see the same, or are seen by the same, four are enough: the tiles of the third stand
// for those of all between the second and the last.
#pragma once

#include <cstdint>
#include <vector>

#include "model/attention/tokens.hpp"

namespace attnsim {

/// A range and where it starts in its block.
struct placed_range {
  token_range tokens;
  std::int64_t offset = 0;
  std::size_t document = 0;  ///< its number in the list
  std::int64_t step = 1;
};

using placed_ranges = std::vector<placed_range>;

/// Position of a range's last token.
constexpr std::int64_t last(const token_range& r) {
  return r.first + (r.count - 1) * r.stride;
}

/// Repeat i has each of the first ranges `moves * i` tokens later in the sequence and `places * i` later in memory. What comes after
/// the repeats is the rest: the last zigzag chunk's two ranges are one.
class range_series {
 public:
  /// Of ranges as they lie in memory, with as few to a repeat as there can be, up to four, where most repeat; else all of them are
  /// the rest.
  explicit range_series(const placed_ranges&);

  std::int64_t repeats() const { return repeats_; }
  std::int64_t places() const { return places_; }
  std::size_t phases() const { return first_.size(); }
  const placed_ranges& rest() const { return rest_; }
  placed_range range(std::size_t phase, std::int64_t repeat) const;

  /// How many ranges end at or before a token; begin at or before it.
  std::int64_t ending_by(std::int64_t token) const;
  std::int64_t beginning_by(std::int64_t token) const;

 private:
  placed_ranges first_;
  placed_ranges rest_;
  std::vector<std::int64_t> moves_;  ///< by phase
  std::int64_t repeats_ = 0;
  std::int64_t places_ = 0;
};

/// The ranges of a series that are looked at, side by side in memory, and what those left out would add.
struct folded_ranges {
  /// A repeat that stands for `times` repeats, all but the last of which are left out before it.
  struct fold {
    std::int64_t first = 0;  ///< its place in memory
    std::int64_t places = 0;
    std::int64_t times = 1;
  };

  placed_ranges ranges;
  std::vector<fold> folds;  ///< ascending

  /// Of a tile's rows or columns from `first` to `end`: those left out that belong to it, and how many tiles like it there are.
  struct unfolded {
    std::int64_t more = 0;
    std::int64_t times = 1;
  };
  unfolded unfold(std::int64_t first, std::int64_t end) const;
};

/// Queries as far as they see different keys, keys as far as different queries see them. `causal`: else all see all.
folded_ranges fold_queries(const range_series& queries, const range_series& keys, bool causal);
folded_ranges fold_keys(const range_series& keys, const range_series& queries, bool causal);

}  // namespace attnsim
