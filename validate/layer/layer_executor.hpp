// Runs a Llama or Mixtral layer, forward and backward: the very operations that model/layer/layer.hpp lists, in their order, of the sizes
// that they say, on one stream. Products, norms, rotations and gates are the back end's (kernels/layer_block.hpp), attention is any
// schedule of the executor, collectives are the transport's.
//
//   input      the residual r and the branch b that the layer before has not added yet; the layer's first norm does
//   output     the residual x after attention and the MLP's m, which the next layer adds
//   backward   from the gradient of x + m to that of r + b, and the parameters' gradients, summed up in fp32
//
// Experts are dealt out to tokens in turn, so that all get as many, and the router's logits weigh what they make of them: a softmax over
// those of a token. A rank's copies lie by expert, so travel as they lie; products of an expert run in as many pieces as ranks sent it
// tokens.
//
// Sharded parameters (FSDP) are gathered before each pass and their gradients' sum is scattered behind backward; otherwise each rank
// has the sums over its own tokens. Norms' gradients are summed over tensor ranks at the end of backward.
#pragma once

#include <memory>
#include <vector>

#include "model/cost/placed_schedule.hpp"
#include "validate/executor.hpp"
#include "validate/layer/parameters.hpp"

namespace attnsim::validate {

/// What all ranks run.
struct layer_plan {
  /// `chosen` is completed (schedules.hpp); the cluster is kept by reference. Throws infeasible for what cannot be run: latents, a
  /// plain MLP, experts that every token passes, that share tokens unevenly or are sharded, products in fp8, collectives in pieces, several stages; and as placed_schedule does.
  layer_plan(const cluster&, const layer_setting&, bool shards_parameters, const attention&,
             const strategy& chosen);

  layer_setting setting;
  bool shards_parameters;
  placed_schedule forward_attention, backward_attention;
  std::vector<layer_operation> forward, backward;

  data_type type() const { return forward_attention.work().problem().dtype; }
};

enum class layer_tensor {
  residual,
  branch,
  output_gradient,
  parameters,           ///< those that the rank keeps: its shard, or all of its tensor rank
  attention_sum,        ///< x
  mlp_output,           ///< m
  input_gradient,       ///< of r + b
  parameter_gradients,  ///< as parameters are kept
};

/// An operation's time on the rank's stream, what it waited for included.
struct layer_pass_times {
  std::vector<seconds> spans;  ///< by operation of the plan
  seconds end;                 ///< of the last, from the moment at which all ranks started
};

class layer_executor {
 public:
  /// References are kept. All ranks make theirs together.
  layer_executor(const layer_plan&, transport&, kernels::backend&);
  ~layer_executor();

  int tensor_rank() const;
  int data_rank() const;
  /// Positions of the rank's context chunk in the order in which they lie; with sequence parallelism the rank norms an equal part.
  std::vector<std::int64_t> positions() const;
  /// Rows of the activations that the rank norms: the first among the chunk's [token][batch], and how many.
  std::int64_t first_row() const;
  std::int64_t rows() const;

  std::int64_t elements(layer_tensor) const;
  /// In fp32, rounded to the plan's type.
  void load(layer_tensor, const std::vector<float>&);
  std::vector<float> read(layer_tensor) const;
  /// Uninitialised activations and parameters become random numbers, for runs that are only timed.
  void load_random();

  /// Both start together with the other ranks. Backward goes with the forward pass before it, and adds to no gradients of earlier
  /// runs. transport_error.
  layer_pass_times forward();
  layer_pass_times backward();

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace attnsim::validate
