// Search for the best strategy: every schedule, Ulysses degree, grid, token layout, K/V order and placement that the
// problem allows, from cheap and rough to dear and exact.
//
//   bound        a formula (model/cost/bound.hpp) for every strategy, with one token layout
//   estimate     the closed form (model/cost/analytic.hpp), small grids first, unless the bound, or then what its program
//                computes, exceeds `layout_slack` times the best estimate so far, the best of its schedule and those of
//                `least` grids; what comes within that also with other layouts
//   simulation   of each schedule and grid the `per_grid` best estimates, if within `slack` of the best of all and among
//                the `most` best, or among the `least` best; and of each schedule the best in any case
//
// Above 256 ranks candidates beyond `slack` keep their closed form; above 1,024 one candidate a grid is simulated,
// `most` shrinks in proportion and `layout_slack` is 1.1 at most. The bound never exceeds the time, so it loses nothing
// within the slacks; the closed form ignores contention between patterns, so it can be too low but hardly too high.
// Tests compare the result with exhaustive simulation on small clusters.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ask/predict.hpp"

namespace attnsim {

struct plan_request {
  attention problem;
  int ranks = 0;
  pass_kind pass = pass_kind::both;
  std::vector<std::string> schedules;  ///< empty: all
  strategy fixed{.ulysses = 0};        ///< fields that a flag has set; Ulysses degree 0: any
  bool fix_tokens = false, fix_placement = false, fix_grid = false, fix_tensor_parallel = false;
  bool fix_keys_sent = false;
  double layout_slack = 1.5;
  double slack = 1.25;
  std::size_t least = 12;
  std::size_t per_grid = 2;
  std::size_t most = 64;
};

/// The same with every strategy simulated, for few ranks only.
plan_request exhaustive(plan_request);

struct rejection {
  strategy candidate;
  std::string reason;
};

struct plan_result {
  attention problem;  ///< as asked for
  pass_kind pass = pass_kind::both;
  std::vector<prediction> candidates;  ///< feasible ones, best first; one a schedule and grid
  std::vector<rejection> rejected;     ///< what does not fit in memory or the algorithm refuses
  /// The best on one rank, one node and, up to 1,024, half the ranks; above 256 of the three best schedules alone.
  std::vector<prediction> on_fewer;
  std::size_t considered = 0;  ///< strategies
  std::size_t estimated = 0;   ///< those that their bound did not rule out
  std::size_t simulated = 0;
  /// What no other strategy can be faster than, in any token layout: the least bound (model/cost/bound.hpp) of what was not
  /// simulated and fits in memory, as far as that is known. Infinite where all were.
  seconds others_at_least;
};

using plan_progress = std::function<void(std::size_t done, std::size_t wanted)>;
/// Is told each candidate as it is predicted, one at a time; of a schedule and grid there may be several.
using plan_preview = std::function<void(const prediction&)>;

/// A batch of several sequences may also be split: groups of ranks that each run their part of it (data parallel).
/// Candidates that are not faster than fewer ranks say so in their warnings.
///
/// `progress`, if any, is called with how many estimates and predictions are done and, as far as known, wanted. Throws
/// infeasible when nothing fits; names what was nearest.
plan_result plan(const cluster&, const plan_request&, const plan_progress& progress = {},
                 const plan_preview& preview = {});

/// The best of each schedule and grid, best first, of what a preview was told.
std::vector<prediction> best_of_each(std::vector<prediction>);

}  // namespace attnsim
