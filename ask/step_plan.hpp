// Search for the fastest step: degrees of parallelism, chunks of a pipeline, micro-batch, recomputation, sharding, and attention's
// schedule. What the question gives is kept; what it leaves open is tried.
//
//   cut        tensor x context x pipeline x data ranks that fit the model, the batch and the tokens; experts on a stage's ranks
//   memory     of every cut, micro-batch, recomputation and sharding: most are ruled out here
//   estimate   the step of what fits, attention by its closed form: of each number of tensor and context ranks the fastest
//              schedule
//   simulation the `finalists` fastest once more with attention simulated, each with the `schedules_tried` fastest schedules
//
// A candidate whose bound exceeds the best estimate so far by `slack` is not estimated: the bound is its operations at the
// highest rates, and the pipeline's bubble. Tests compare the winner with that of an exhaustive search.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ask/step.hpp"

namespace attnsim::ask {

struct step_plan_request {
  step_question asked;
  std::vector<std::string> schedules;  ///< of attention; empty: all
  double slack = 1.5;
  std::size_t finalists = 24;
  std::size_t schedules_tried = 3;
};

/// Everything is estimated and simulated, for few ranks only.
step_plan_request exhaustive(step_plan_request);

/// Candidates that one reason rules out.
struct ruled_out {
  std::string reason;
  std::size_t candidates = 0;
  std::string example;  ///< the one that was nearest
};

struct step_plan {
  std::vector<step_answer> candidates;  ///< best first, all by simulation
  std::vector<ruled_out> rejected;
  std::size_t considered = 0, estimated = 0, simulated = 0;
};

using step_plan_progress = std::function<void(std::size_t done, std::size_t wanted)>;

/// The batch must be given: candidates are ranked by the time of one step. Throws infeasible when nothing fits: names what was
/// nearest.
step_plan plan(const step_plan_request&, const cluster&, const step_plan_progress& = {});

}  // namespace attnsim::ask
