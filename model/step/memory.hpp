// What a device of a pipeline rank holds during a step, by kind. N: ranks with the same parameters (data x context).
//
//                    plain       optimizer    gradients    parameters sharded (FSDP)
//   parameters       2 bf16      2            2            4 / N fp32
//   gradients        4 fp32      4            4 / N        4 / N
//   optimizer        12          12 / N       12 / N       8 / N        fp32 copy and two moments of Adam
//   activations      what a layer keeps for backward (layer.hpp) x layers x micro-batches under way
//   buffers          of FSDP two layers' gathered parameters, one's gradients, embeddings; blocks that attention has received. Under a
//                    pipeline FSDP gathers once and sums once a step (torchtitan: reshard_after_forward and gradient sync off but for the
//                    last micro-batch): all gathered parameters, 2, and whole gradients, 4
//   workspace        one layer's working memory, or where that and attention's blocks are less the loss's, in their place
//
// Rajbhandari et al., arXiv 1910.02054, has the sharded states.
#pragma once

#include <string_view>

#include "model/layer/layer.hpp"

namespace attnsim {

/// What is kept once among ranks that would have the same: each includes those before it (ZeRO 1 to 3).
enum class sharding { none, optimizer, gradients, parameters };
std::string_view name_of(sharding);
sharding parse_sharding(std::string_view);

struct step_memory {
  double parameters = 0, gradients = 0, optimizer = 0, activations = 0, buffers = 0, workspace = 0;

  double total() const {
    return parameters + gradients + optimizer + activations + buffers + workspace;
  }
};

struct held_layers {
  int layers = 0;               ///< of the pipeline rank
  int dense = 0;                ///< of them, those with a dense MLP where others have experts
  double layers_in_flight = 0;  ///< whose activations are kept at once: layers x micro-batches
  bool embedding = false;
  bool loss = false;
  double attention_buffers = 0;  ///< bytes of attention's working blocks
};

/// Of training.
step_memory memory_of(const layer_setting&, sharding, const held_layers&);

/// Of a forward pass that keeps keys and values of `cached` tokens a device: no gradients, no optimizer.
step_memory memory_of_prefill(const layer_setting&, const held_layers&,
                              double cached_bytes_a_layer);

/// Parameters on a device, sharded or not: layers and embeddings, those of experts apart.
double parameters_of(const layer_setting&, const held_layers&);
double expert_parameters_of(const layer_setting&, const held_layers&);

}  // namespace attnsim
