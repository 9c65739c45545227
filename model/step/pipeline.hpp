// How a step's micro-batches pass the pipeline: one forward, one backward (Narayanan et al., arXiv 2104.04473), with chunks of
// layers interleaved where a rank has several.
//
//   warm-up of rank r   p - r - 1 forward passes; interleaved (p - r - 1) 2 + (chunks - 1) p
//   then                forward and backward in turn, then the backward passes that are left
//
// A pass starts when its rank is free and its input has arrived. Times of ranks may differ: the last has the loss.
#pragma once

#include <vector>

#include "model/units.hpp"

namespace attnsim {

/// By virtual stage: chunk c of rank r is stage c x ranks + r.
struct stage_times {
  std::vector<seconds> forward, backward;
  std::vector<seconds> first_forward;  ///< of the first micro-batch, which may wait for parameters
  std::vector<seconds> last_backward;  ///< of the last, whose gradients are reduced beside it
  seconds send;                        ///< of activations or their gradients to the next rank
};

struct pipeline_run {
  seconds time;
  std::vector<seconds> busy;  ///< by rank
  int slowest = 0;            ///< the rank that is busy longest

  seconds bubble() const { return time - busy[static_cast<std::size_t>(slowest)]; }
};

/// Throws infeasible where chunks are interleaved and the micro-batches are not a multiple of the ranks.
pipeline_run run_pipeline(int ranks, int chunks, int micro_batches, const stage_times&);

/// How many chunks' activations a rank holds at most at once.
int chunks_in_flight(int ranks, int chunks, int micro_batches, int rank);

}  // namespace attnsim
