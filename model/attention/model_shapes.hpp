// The attention of a model: one of topologies/models.yaml by its name, or any by its config.json, as Hugging Face's transformers
// and diffusers write them.
#pragma once

#include <string>
#include <vector>

#include "model/attention/attention.hpp"

namespace attnsim {

/// Which layers of a model that has two kinds: those that see all tokens, or those that see a window.
enum class layer_kind { full, window };

std::string_view name_of(layer_kind);
layer_kind parse_layer(
    std::string_view text);  ///< throws std::invalid_argument that lists the names

/// Sets heads, kv_heads, head_dim, v_head_dim, mask, window, sinks and the latent's elements to those of a layer, and adds to the notes what stands in for
/// what: which of a model's layers it is, what is left out.
///
/// `model` is a name of the list, a file, or the text of a config.json itself (it begins with a brace). Of a configuration count,
/// in `text_config` where it has one:
///   num_attention_heads (num_heads, n_head), num_key_value_heads
///   head_dim (attention_head_dim), else hidden_size (dim, n_embd) over the heads
///   kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim     latent attention, as it trains and prefills: a K/V head a head
///   sliding_window, use_sliding_window, attention_chunk_size
///   layer_types, sliding_window_pattern, max_window_layers, no_rope_layers; num_hidden_layers
///   _class_name, joint_attention_dim     a diffusion model: full mask
///
/// Throws input_error: an unknown name (lists the known ones), a key that is missing or malformed, a layer that the model
/// does not have.
void use_model(attention&, const std::string& model, layer_kind layer = layer_kind::full);

/// Sets them to those of latent attention with its projections absorbed, as it decodes: one K/V head of kv_lora_rank and the rotary
/// elements, of which the former are the values. Throws as use_model(), and input_error for a model without latent attention.
void use_absorbed(attention&, const std::string& model);

/// Layers of a model that has two kinds, 0 and 0 of one whose layers are alike. Chunks that see themselves only are no window.
struct layer_counts {
  std::int64_t full = 0, window = 0;
};
/// Throws as use_model().
layer_counts layers_of(const std::string& model);

/// The names of the list.
std::vector<std::string> known_models();

}  // namespace attnsim
