// The answer to a question about a step: how long it takes, where the time goes, what it holds in memory, and what faster
// attention would give. docs/steps.md explains the model.
//
//   layer      its operations in order (model/layer/layer.hpp) on one device's streams (sim/device_run.hpp): attention as its own
//              schedule was simulated, products and elementwise operations by the device profile, collectives on shared links.
//              Runs of three and four layers: what the fourth adds is what every further layer adds
//   stage      its layers, with embedding or loss
//   step       micro-batches through the stages (model/step/pipeline.hpp), then the optimizer
//
// Layers with and without a window are counted as their mean. Not counted: the host, data loading, checkpoints.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "ask/step_costs.hpp"
#include "ask/step_question.hpp"
#include "model/step/memory.hpp"

namespace attnsim::ask {

struct step_answer {
  std::string cluster, model;
  step_task task = step_task::train;
  step_type dtype = step_type::bf16;
  degrees cut;
  sharding shard = sharding::none;
  recomputation recompute = recomputation::none;
  std::int64_t sequence = 0, prefix = 0;
  std::int64_t global_batch = 0, micro_batch = 1;
  int micro_batches = 1;  ///< that pass a pipeline in a step
  prediction attention;   ///< of one layer that sees all tokens, one micro-batch

  seconds time, low, high;
  part_times parts{};  ///< of the pipeline rank that is busy longest; they add up to the time
  double tokens_a_second = 0;  ///< of a device
  flop_rate
      model_rate;  ///< of a device: 6 a parameter and token, 12 a visible pair, nothing computed again
  double utilisation = 0;  ///< model_rate over the device's bf16 peak
  /// The step over a step whose attention is 2 or 4 times as fast, or takes no time at all.
  std::array<double, 3> speedup_of_attention{};
  attnsim::bottleneck bottleneck;  ///< the part that takes most
  step_memory memory;              ///< of the pipeline rank that holds most
  int memory_rank = 0;
  std::vector<double> peak_by_rank;  ///< bytes, by pipeline rank
  bool feasible = true;
  std::string
      lacks;  ///< where it is not: "needs 100 GiB of the device's 80 GiB on pipeline rank 0, ..."
  std::vector<std::string> warnings;

  double part(step_part p) const { return parts[static_cast<std::size_t>(p)]; }
};

enum class step_detail {
  all,
  time_only,  ///< without what faster attention would give
};

/// Throws input_error and infeasible about fields: degrees that do not fit the ranks, the model or the batch, and as attention's
/// schedule does. Memory that does not suffice is in the answer.
step_answer answer(const step_question&, const cluster&);
/// With what other steps of the cluster share.
step_answer answer(const step_question&, const cluster&, known_parts&,
                   step_detail = step_detail::all);
step_answer answer(const step_question&, const cluster&, const transformer&, known_parts&,
                   step_detail = step_detail::all);

/// What a step takes at least: its operations at the highest rates with the pipeline's bubble, and its memory without
/// attention's buffers. Throws as answer() does.
struct step_bound {
  double time = 0;    ///< seconds
  double memory = 0;  ///< bytes, of the pipeline rank that holds most
};
step_bound bound_of(const step_question&, const cluster&, const transformer&);

/// Of a device, what the step may hold.
double memory_for(const step_question&, const cluster&);

/// Who runs a layer by itself.
enum class layer_runner {
  framework,  ///< again and again, until clocks have settled
  executor,  ///< validate/layer: from an idle device; copies values, and adds up norms' gradients over tensor ranks
};

/// One layer of a micro-batch by itself, with attention over all tokens. Sharded parameters are gathered before each pass and their
/// gradients summed behind backward.
struct layer_answer {
  layer_setting setting;
  sharding shard = sharding::none;
  prediction attention;
  part_times forward{}, backward{};
  seconds time, low, high;  ///< of both; the interval as a step has it
};
layer_answer layer_of(const step_question&, const cluster&, const transformer&, known_parts&,
                      layer_runner = layer_runner::framework);

/// One layer's attention, all passes, the mean over the model's layers.
double attention_seconds(const step_question&, const transformer&, known_parts&);

}  // namespace attnsim::ask
