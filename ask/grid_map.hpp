// How the shape of the grid changes the time: for every R x C whose places divide the ranks, the best schedule by the closed
// form, with what is left of the ranks as Ulysses' groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ask/planner.hpp"
#include "ask/question.hpp"

namespace attnsim::ask {

struct grid_map {
  std::vector<int> sides;  ///< the divisors of the ranks: what R and C may be
  /// By R, then by C, in the order of `sides`; none: R x C does not divide the ranks, or no schedule runs there and fits.
  std::vector<std::vector<std::optional<prediction>>> best;

  const prediction* fastest() const;  ///< null: none runs
};

/// Schedules by name, none: all. Each has its usual tokens and placement unless the question gives them. Throws as problem_of
/// does; what a schedule refuses is left out.
grid_map map_grids(const question&, const cluster&, const std::vector<std::string>& schedules,
                   const plan_progress& progress = {});

}  // namespace attnsim::ask
