// What a rank sends in a pass by its schedule's formula, so that nothing has to be generated; to the byte what the program
// sends (tests/model/volume_test.cpp).
#pragma once

#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim {

/// The grid of a completed strategy's schedule with an axis for the exchange of heads, then one for tensor parallelism.
rank_grid whole_grid(const strategy&);
/// Along which heads are exchanged.
axis_set exchange_axis(const rank_grid& whole);

/// Of a completed strategy; axes of its whole grid. Nothing beside the exchange of heads where a schedule tells nothing.
volume volume_of(const strategy&, const attention&, pass_kind);

}  // namespace attnsim
