// A whole model as its layers are made: widths, counts, experts, and how many parameters that makes. Read from
// topologies/models.yaml or a config.json (attention/model_file.hpp).
//
//   attention     hidden (heads head_dim + kv_heads (head_dim + value_dim)) + heads value_dim hidden
//   of latents    hidden (query_latent + latent + rotary) + query_latent heads head_dim
//                 + latent heads (head_dim - rotary + value_dim) + heads value_dim hidden (DeepSeek-V2, arXiv 2405.04434, 2.1);
//                 without query_latent queries are hidden heads head_dim
//   MLP           2 hidden intermediate; gated 3 hidden intermediate
//   experts       hidden experts (router) + experts x an MLP of each, and a shared one
//   norms         2 hidden
//   embedding     vocabulary hidden; the output's the same again unless tied
#pragma once

#include <cstdint>
#include <string>

#include "model/attention/attention.hpp"

namespace attnsim {

struct transformer {
  std::string name;
  attention
      shape;  ///< heads, head dimension and mask of the layers that see all tokens; no sequence yet
  attention limited;  ///< of those with a window
  int layers = 0;
  int limited_layers = 0;  ///< of them, those with a window
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;  ///< of a dense MLP
  std::int64_t vocabulary = 0;
  bool gated = true;  ///< two products before the activation (SwiGLU), not one
  bool tied = false;  ///< the output layer is the embedding

  int experts = 0;  ///< a layer's; 0: a dense MLP
  int active_experts = 0;
  std::int64_t expert_intermediate = 0;
  std::int64_t shared_intermediate = 0;  ///< of experts that every token passes; 0: none
  int dense_layers = 0;                  ///< layers with a dense MLP where others have experts

  std::int64_t query_latent = 0;  ///< that queries are made of; 0: of the hidden elements
  std::int64_t latent = 0;        ///< that keys and values are made of; 0: likewise
  std::int64_t rotary = 0;        ///< elements of a key beside the latent, the same for all heads

  std::int64_t query_width() const { return shape.heads * shape.head_dim; }
  std::int64_t key_width() const { return shape.kv_heads * shape.head_dim; }
  std::int64_t value_width() const { return shape.kv_heads * shape.value_dim(); }
  std::int64_t output_width() const { return shape.heads * shape.value_dim(); }
  /// What a token is projected to before its heads; 0: nothing.
  std::int64_t latent_width() const { return latent > 0 ? query_latent + latent + rotary : 0; }
  /// What keys and values are made of their latent: all but the rotary elements.
  std::int64_t expanded_width() const {
    return key_width() - shape.kv_heads * rotary + value_width();
  }
  /// Of a token in a cache of keys and values.
  std::int64_t cached_width() const {
    return latent > 0 ? latent + rotary : key_width() + value_width();
  }
  int products_before_activation() const { return gated ? 2 : 1; }

  double attention_parameters() const;                ///< without norms
  double latent_parameters() const;                   ///< of them, those that make latents
  double norm_parameters() const;                     ///< of a layer
  double dense_parameters(std::int64_t width) const;  ///< of an MLP
  double expert_parameters() const;                   ///< of one expert
  double layer_parameters() const;                    ///< all experts; the mean over layers
  double active_layer_parameters() const;             ///< that a token passes
  double embedding_parameters() const;                ///< of one table
  double parameters() const;
  double active_parameters() const;
};

/// Throws input_error for what use_model refuses, a key that is missing or malformed, a listed model whose layers the list
/// does not have.
transformer read_transformer(const std::string& model);

/// Operations that training on a token needs, as the field counts them: 6 for each active parameter but the embedding's, and
/// attention's 12 a visible pair and element of a head (6 of keys, 6 of values), pairs with `prefix` cached tokens before the sequence too.
double model_operations_a_token(const transformer&, std::int64_t sequence, std::int64_t prefix = 0);

}  // namespace attnsim
