// Search for the best strategy: every schedule, grid, token layout, K/V order, placement and kernel that the problem
// allows is estimated by the closed form; the best by that are simulated and ranked by simulation.
//
// Pruning: of each schedule and grid the `per_grid` best estimates are simulated, if within `slack` of the best estimate of
// all or among the `least` best; and of each schedule the best in any case. The closed form ignores contention between patterns, so it can be too low but hardly too
// high; tests compare the result with exhaustive simulation on small clusters.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/predict.hpp"

namespace attnsim {

struct plan_request {
  attention problem;
  int ranks = 0;
  pass_kind pass = pass_kind::both;
  std::vector<std::string> schedules;  ///< empty: all
  strategy fixed{.ulysses = 0};        ///< fields that a flag has set; Ulysses degree 0: any
  bool fix_tokens = false, fix_placement = false, fix_grid = false;
  double slack = 1.25;
  std::size_t least = 12;
  std::size_t per_grid = 2;
};

struct rejection {
  strategy candidate;
  std::string reason;
};

struct plan_result {
  std::vector<prediction> candidates;  ///< feasible ones, best first; one a schedule and grid
  std::vector<rejection> rejected;     ///< what does not fit in memory or the algorithm refuses
  std::size_t considered = 0;          ///< strategies estimated
  std::size_t simulated = 0;
};

/// `progress`, if any, is called with the share done. Throws infeasible when nothing fits; names what was nearest.
plan_result plan(const cluster&, const plan_request&,
                 const std::function<void(double)>& progress = {});

}  // namespace attnsim
