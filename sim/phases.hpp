// What holds a run up, operation by operation: of each communication of a rank, the link of its own
// route that was used most while it lasted.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/placed_schedule.hpp"
#include "sim/timeline.hpp"

namespace attnsim {

struct phase {
  std::uint32_t operation = 0;  ///< its number in the program
  seconds start;                ///< reached; the peers may come later
  seconds end;
  link_id bottleneck = 0;
  double utilisation = 0;  ///< of the bottleneck by all flows, mean over the phase
};

/// In order of their end. Throws std::invalid_argument unless the run was recorded, intervals and
/// links.
std::vector<phase> phases(const placed_schedule&, const timeline&, int rank);

/// Bytes that a link has carried between two times, by what was recorded of it.
double bytes_between(const std::vector<load_change>&, seconds start, seconds end);

}  // namespace attnsim
