// A rank's pass as a profiler saw it, held against the prediction operation by operation.
#pragma once

#include <string>
#include <vector>

#include "ask/part_errors.hpp"
#include "model/cost/placed_schedule.hpp"
#include "sim/timeline.hpp"

namespace attnsim::ask {

/// A point for each operation that was seen, then one for the pass, which is called `whole`. `repeats` are the same pass
/// measured again and again: medians count. Simulates the pass.
std::vector<compared_point> compare_pass(const placed_schedule&, int rank,
                                         const std::vector<rank_timeline>& repeats,
                                         const std::string& whole);

}  // namespace attnsim::ask
