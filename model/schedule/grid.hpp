// The logical grid of ranks. Rank numbers are row-major (last axis fastest), a CuTe layout of shape (extents) and the
// strides that follow: on R x C, rank = r * C + c. A *row* is the C ranks of equal r, so going along the row changes
// coordinate c (axis 1); a *column* is the R ranks of equal c (axis 0). On 2 x 3, rank 4 is (1,1), its row {3,4,5}, its
// column {1,4}. Ring Attention is R = P, C = 1.
#pragma once

#include <vector>

namespace attnsim {

using axis_set = unsigned;  ///< bit i: axis i

constexpr axis_set only(int axis) {
  return 1u << axis;
}

class rank_grid {
 public:
  /// Throws std::invalid_argument unless every extent is at least 1.
  explicit rank_grid(std::vector<int> extents);

  int ranks() const { return ranks_; }
  int axes() const { return static_cast<int>(extents_.size()); }
  int extent(int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  const std::vector<int>& extents() const { return extents_; }
  int extent_of(axis_set axes) const;  ///< product of the extents
  int coordinate(int rank, int axis) const { return rank / stride(axis) % extent(axis); }

  /// The rank `distance` further along `axis`; wraps around, distances may be negative.
  int shifted(int rank, int axis, int distance) const;

  /// The rank at swapped coordinates 0 and 1. Precondition: these axes have equal extents.
  int transposed(int rank) const;

  /// The ranks that differ from `rank` in these axes only, in ascending order, `rank` included.
  std::vector<int> group(int rank, axis_set axes) const;

  /// The first of them.
  int first_in_group(int rank, axis_set axes) const;

  /// The number of the group that holds `rank`, and the rank's place in it: group() lists places 0, 1, ...
  int group_index(int rank, axis_set axes) const;
  int place_in_group(int rank, axis_set axes) const;

  friend bool operator==(const rank_grid&, const rank_grid&) = default;

 private:
  int stride(int axis) const { return strides_[static_cast<std::size_t>(axis)]; }

  std::vector<int> extents_;
  std::vector<int> strides_;
  int ranks_ = 1;
};

}  // namespace attnsim
