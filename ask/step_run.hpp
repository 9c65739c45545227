// A step put together of what its layers cost: stages of a pipeline, micro-batches through them, the optimizer; or a prefill's
// stages up to the first tokens.
#pragma once

#include <vector>

#include "ask/step_costs.hpp"
#include "ask/step_question.hpp"
#include "model/step/memory.hpp"

namespace attnsim::ask {

class step_run {
 public:
  /// References are kept. `micro_batches`: that pass the pipeline in a step.
  step_run(const step_costs&, const layer_setting&, step_task, sharding, int micro_batches,
           std::int64_t sequences);

  /// Of the pipeline rank that is busy longest; they add up to the step's time. With attention `scale` times as long.
  part_times parts(double scale = 1) const;

  /// Layers of a pipeline rank, and of how many activations are kept at once.
  held_layers held(int rank) const;

 private:
  /// The passes over each virtual stage by what they go to.
  struct stage_parts {
    std::vector<part_times> forward, backward, first_forward, last_backward;
  };

  part_times pass_over(std::size_t stage, pass_kind, beside, double scale) const;
  std::vector<part_times> passes(pass_kind, beside, double scale) const;
  stage_parts stages(double scale) const;
  part_times train(double scale) const;
  part_times prefill(double scale) const;

  const step_costs& costs_;
  const layer_setting& setting_;
  step_task task_;
  sharding sharding_;
  int micro_batches_;
  std::int64_t sequences_;       ///< of a micro-batch
  std::vector<layer_row> rows_;  ///< of each virtual stage
};

/// Layers of each virtual stage: as even as they go, the first ones have more.
std::vector<layer_row> stage_layers(const degrees&, const transformer&);

}  // namespace attnsim::ask
