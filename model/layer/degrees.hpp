// How a step is cut over devices, and which devices form a group. Ranks are numbered as Megatron-LM and NeMo do: tensor-parallel
// ranks are next to each other, then context-parallel ones, then data-parallel ones, then pipeline stages; rank i is device i.
//
//   device = tensor rank + tensor (context rank + context (data rank + data stage))
//
// Experts are spread over consecutive ranks of a stage, whatever else these ranks share.
#pragma once

#include <string_view>

#include "model/cost/collective.hpp"

namespace attnsim {

struct degrees {
  int tensor = 1;
  int context = 1;
  int data = 1;
  int pipeline = 1;
  int expert = 1;
  int chunks = 1;  ///< of layers that a pipeline rank has (virtual stages, interleaved)

  int stage_ranks() const { return tensor * context * data; }
  int ranks() const { return stage_ranks() * pipeline; }
  int replicas() const {
    return context * data;
  }  ///< ranks with the same parameters, but for experts
  int expert_replicas() const { return stage_ranks() / expert; }
};

enum class rank_group {
  tensor,           ///< have parts of a layer's matrices, and of its tokens between them
  context,          ///< have parts of a sequence
  replicas,         ///< have the same parameters: data and context ranks
  expert,           ///< have parts of a layer's experts
  expert_replicas,  ///< have the same experts
};

std::string_view name_of(rank_group);
int size_of(const degrees&, rank_group);

/// The groups of the first stage and of those that share a node with it: others do the same elsewhere.
device_groups groups_of(const degrees&, rank_group, int devices_per_node);

/// Pairs of a device and the one that has its place in the next stage, likewise.
device_groups stage_neighbours(const degrees&, int devices_per_node);

}  // namespace attnsim
