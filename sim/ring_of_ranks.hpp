// Simulation of ranks in a ring that exchange with their neighbours only, over links that nobody else uses: the answer of the
// event loop (simulator.hpp), in time that follows what differs between ranks and not their number.
//
// Under a causal mask the ranks of a ring are not alike, but nearly so: most of them do what their neighbour does, a constant
// time later. So ranks are not run in order of time, all at once, but side by side in rounds. In a round each flow, then each
// rank goes as far as it can with what its neighbours have told it so far: when they arrived at their communication, and until
// when they will not arrive at more (conservative parallel simulation: Chandy and Misra, Comm. ACM 24(4), 1981). A round is a
// function of the neighbours' states alone, which knows differences of times only. Where consecutive ranks are in the same
// state, each a constant time after the one before, and so are their neighbours, one is run for all of them, exactly.
//
// Such ranks are found by comparing states, and the comparison is exact; a straggler or a slow link is in no such row. A node's
// devices differ by their links, so what is compared are cells of consecutive ranks, as long as the links' pattern repeats. Cells
// differ where a ring goes from one leaf switch to the next, so the same is done with blocks of cells: under switches that are
// alike, each block a constant time after the one before, one block is run for all of them.
#pragma once

#include <optional>

#include "sim/simulator.hpp"
#include "sim/timeline.hpp"

namespace attnsim {

/// Nothing where the ranks are no such ring or the ring is too irregular to gain, where the host's launches or all ranks'
/// intervals are asked for, and where the schedule cannot progress. The slowest rank's intervals take a second run, which knows
/// the rank.
std::optional<timeline> simulate_ring(const placed_schedule&, const simulation_options&);

}  // namespace attnsim
