#include "model/schedule/grid.hpp"

#include <stdexcept>

namespace attnsim {

rank_grid::rank_grid(std::vector<int> extents)
    : extents_(std::move(extents)), strides_(extents_.size()) {
  for (std::size_t i = extents_.size(); i-- > 0;) {
    if (extents_[i] < 1) throw std::invalid_argument("a grid's extents must be at least 1");
    strides_[i] = ranks_;
    ranks_ *= extents_[i];
  }
}

int rank_grid::extent_of(axis_set axes) const {
  int product = 1;
  for (int a = 0; a < this->axes(); ++a) {
    if (axes & only(a)) product *= extent(a);
  }
  return product;
}

int rank_grid::shifted(int rank, int axis, int distance) const {
  const int n = extent(axis);
  const int from = coordinate(rank, axis);
  const int to = ((from + distance) % n + n) % n;
  return rank + (to - from) * stride(axis);
}

int rank_grid::transposed(int rank) const {
  const int down = coordinate(rank, 1) - coordinate(rank, 0);
  return rank + down * (stride(0) - stride(1));
}

int rank_grid::first_in_group(int rank, axis_set axes) const {
  for (int a = 0; a < this->axes(); ++a) {
    if (axes & only(a)) rank -= coordinate(rank, a) * stride(a);
  }
  return rank;
}

std::vector<int> rank_grid::group(int rank, axis_set axes) const {
  std::vector<int> members{rank};
  for (int a = 0; a < this->axes(); ++a) {
    if (!(axes & only(a))) continue;
    std::vector<int> wider;
    for (const int member : members) {
      for (int i = 0; i < extent(a); ++i)
        wider.push_back(shifted(member, a, i - coordinate(member, a)));
    }
    members = std::move(wider);
  }
  return members;
}

int rank_grid::group_index(int rank, axis_set axes) const {
  int index = 0;
  for (int a = 0; a < this->axes(); ++a) {
    if (!(axes & only(a))) index = index * extent(a) + coordinate(rank, a);
  }
  return index;
}

int rank_grid::place_in_group(int rank, axis_set axes) const {
  int place = 0;
  for (int a = 0; a < this->axes(); ++a) {
    if (axes & only(a)) place = place * extent(a) + coordinate(rank, a);
  }
  return place;
}

}  // namespace attnsim
