// The kernel calls of attention between blocks of many ranges, counted instead of listed: on a grid each rank gathered a whole row
// of queries and a whole column of keys, and all ranks of a row the same queries.
#pragma once

#include <cstddef>
#include <vector>

#include "model/attention/range_series.hpp"
#include "model/attention/tokens.hpp"

namespace attnsim {

/// A block's tokens by document, worked out once for all blocks that it meets.
class placed_block {
 public:
  struct part {
    std::size_t document;  ///< its number
    range_series ranges;
  };

  placed_block(const token_set&, const std::vector<token_document>&);

  /// By ascending document.
  const std::vector<part>& parts() const { return parts_; }
  /// Both have the same tokens, in ascending order.
  bool is_same_ascending(const placed_block&) const;

 private:
  token_set tokens_;
  bool ascends_;
  std::vector<part> parts_;
};

/// The tiles of kernel_tiles(), but of those that are alike one, with the times that there are; where it lies means nothing. Takes
/// time that follows how often what a block's ranges see changes along it, where they repeat (range_series.hpp), not their
/// number. Precondition: no window, no prefix, no keys of another sequence; both blocks were placed in these documents.
std::vector<tile> counted_tiles(const placed_block& queries, const placed_block& keys,
                                const attention&, bool staircase,
                                const std::vector<token_document>& documents, held_results = {});

}  // namespace attnsim
