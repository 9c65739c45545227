// A search for schedules that beat the published ones: composed level by level (compositions.hpp), then changed step by step
// (search_moves.hpp). The simulator is the judge; what the closed form or the limit rules out is not simulated.
//
//   start   the plan's best, and every composition of the cluster's levels, the best of them by the closed form; each in parts,
//           and with shares by speed
//   then    generations: every one of the `beam` best so far makes as many children as fit into a generation; children that
//           are new are evaluated side by side
//   end     after `evaluations`, or when the best is within 1 % of its limit
//
// Which children a generation has depends on the seed, its number and what was found so far: the same seed gives the same
// result on any number of cores. A log keeps every evaluation; a search that finds them there does not repeat them, so one that
// was stopped and is run again goes on, and ends with the same result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ask/planner.hpp"

namespace attnsim {

struct search_request {
  plan_request
      planned;  ///< the problem, ranks and pass; what is fixed stays so for published schedules
  std::uint64_t seed = 1;
  std::size_t evaluations = 2000;  ///< simulations, besides the plan's
  std::size_t beam = 16;
  std::string log;  ///< a file; empty: none
};

struct search_result {
  std::vector<prediction> published;  ///< the plan's, best first
  prediction found;                   ///< the best of all, a published one where none is better
  std::size_t evaluated = 0;          ///< simulated, and found in the log
  std::uint64_t seed = 1;
};

/// Fields of a question that a search does not take: it chooses what they say, by simulation, and pads nothing.
const std::vector<std::string_view>& fields_left_to_search();

using search_progress = std::function<void(std::size_t evaluated, std::size_t wanted)>;

/// Throws as plan() does, and input_error for a log that is another search's or cannot be written. The program of what is found
/// is checked (model/schedule/schedule_check.hpp).
search_result search_schedules(const cluster&, const search_request&, const search_progress& = {});

}  // namespace attnsim
