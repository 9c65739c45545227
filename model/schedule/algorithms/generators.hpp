// The generators behind the table of schedules.cpp, and the pieces that several of them share. Axis 0 of the grid runs
// along a column (keys travel), axis 1 along a row (queries and outputs travel).
#pragma once

#include "model/schedule/strategy.hpp"

namespace attnsim {

schedule ring(const strategy&, const attention&, pass_kind);
schedule mesh(const strategy&, const attention&, pass_kind);
schedule attention2d(const strategy&, const attention&, pass_kind);
schedule allgather(const strategy&, const attention&, pass_kind);
schedule attention2d_overlap(const strategy&, const attention&, pass_kind);
schedule double_ring(const strategy&, const attention&, pass_kind);
schedule startrail(const strategy&, const attention&, pass_kind);
schedule burst(const strategy&, const attention&, pass_kind);
schedule tokenring(const strategy&, const attention&, pass_kind);
schedule hierarchical_allgather(const strategy&, const attention&, pass_kind);

/// The schedule over groups of `degree` ranks that exchange tokens for heads around it (head_exchange.cpp).
schedule with_head_exchange(schedule, int degree);
/// The schedule on as many ranks for every of its ranks, with its share of the heads each.
schedule with_tensor_parallelism(schedule, int degree);

constexpr int along_column = 0;
constexpr int along_row = 1;

/// The chunk of the rank `down` further along the column and `right` further along the row.
constexpr position at(int down, int right) {
  return {.shift = {down, right}};
}

/// The ring reduction of one row's partial outputs or dQ (or of one column's dK, dV): the partial of the rank k further
/// along `axis` is complete here after hop(k - 1) came in and the own part is added; hop(k) sends it on. After hop(n - 1)
/// the own chunk's sum over all others has arrived: finish() adds the own part. Attention2D, algorithm 7.
class ring_reduction {
 public:
  /// `wire`: number format of what travels; `own_part(k)`: this rank's partial for the chunk k further along.
  ring_reduction(schedule_builder&, int axis, int stream, precision wire, position home = {});

  void hop(int k, const operands& own_part);
  void finish(const operands& own_part, const operands& result);

 private:
  void combine(const operands& own_part, const operands& into);

  schedule_builder* builder_;
  int axis_;
  int stream_;
  precision wire_;
  position home_;
  operands incoming_;  ///< empty before the first hop
};

}  // namespace attnsim
