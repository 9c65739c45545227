// Training steps of the GPT-3 models that Attention2D's paper measures, sequence-parallel over all ranks.
#pragma once

#include "ask/predict.hpp"

namespace attnsim::reproduce {

/// Share of the peak that the dense layers are assumed to reach.
inline constexpr double dense_efficiency = 0.5;

/// One layer of a training step, forward and backward: attention by simulation, and the dense layers, 12 h^2 weights of
/// 6 operations a token each (h = heads x head_dim), the rank's own tokens on every rank. Embeddings, optimiser and the
/// reduction of weight gradients, once a step of unknown batch, are left out.
seconds layer_step(const cluster&, const attention&, const strategy&, int ranks);

/// The attention of a model of topologies/models.yaml, causal, bf16, batch 1.
attention attention_of(const std::string& model, std::int64_t sequence);

/// Striped tokens, the squarest grid and, but for ring, the paper's transposed K/V order.
strategy paper_strategy(const std::string& schedule);

}  // namespace attnsim::reproduce
