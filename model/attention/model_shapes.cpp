#include "model/attention/model_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/attention/model_file.hpp"
#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<layer_kind, 2> layers{
    {{layer_kind::full, "full"}, {layer_kind::window, "window"}}};

/// A model as its configuration has it.
struct described {
  std::string name;
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t key_dim = 0, value_dim = 0;  ///< elements of a head
  std::int64_t latent = 0,
               rotary = 0;  ///< of latent attention: elements of a token's latent, and beside it
  mask_kind mask = mask_kind::causal;
  std::int64_t window = 0;  ///< tokens; 0: none
  std::int64_t chunk = 0;   ///< the same where tokens see their chunk only
  std::int64_t limited_layers = 0,
               full_layers = 0;   ///< with and without it; both zero: all are alike
  std::int64_t other_layers = 0;  ///< without softmax attention
  bool sinks = false, joint = false;

  bool mixed() const { return limited_layers > 0 && full_layers > 0; }
};

described listed(const std::string& name, const config_node& node) {
  allow_model_keys(node);
  described m{.name = name,
              .heads = node.get_integer("heads", 1),
              .kv_heads = node.get_integer("kv_heads", 1),
              .key_dim = node.get_integer("head_dim", 1)};
  m.value_dim = node.get_integer("value_head_dim", 1, m.key_dim);
  m.latent = node.get_integer("latent", 1, 0);
  m.rotary = node.get_integer("rotary", 1, 0);
  if (node.has("mask")) m.mask = node.get_as("mask", parse_mask);
  m.window = node.get_integer("window", 1, 0);
  m.chunk = node.get_integer("chunk", 1, 0);
  if (node.has("layers")) {
    const auto counts = node.at("layers");
    counts.allow_only({"limited", "full"});
    m.limited_layers = counts.get_integer("limited", 1);
    m.full_layers = counts.get_integer("full", 1);
  }
  m.sinks = node.get<bool>("sinks", false);
  m.joint = node.get<bool>("joint", false);
  return m;
}

std::int64_t head_dim_of(const config_node& node, std::int64_t heads) {
  const auto own = first_key(node, {"head_dim", "attention_head_dim"});
  if (node.has(own)) return size_under(node, own);
  const auto width = first_key(node, {"hidden_size", "dim", "n_embd"});
  const auto elements = size_under(node, width);
  if (elements % heads != 0)
    node.fail(width, fmt::format("expected head_dim, or a multiple of the {} heads", heads));
  return elements / heads;
}

/// How many layers are of which kind, from the list of them.
void count_layers(described& m, const config_node& types) {
  for (const auto& type : types.items()) {
    const auto kind = type.as<std::string>();
    if (kind == "full_attention") {
      ++m.full_layers;
    } else if (kind == "sliding_attention" || kind == "chunked_attention") {
      ++m.limited_layers;
    } else {
      ++m.other_layers;
    }
  }
}

/// Which layers have the window or chunk. Transformers tells it by one of several keys.
void read_layers(described& m, const config_node& node) {
  if (node.has("layer_types")) {
    count_layers(m, node.at("layer_types"));
    if (m.limited_layers == 0) m.window = m.chunk = 0;
    if (m.full_layers == 0 && m.limited_layers == 0)
      node.fail("layer_types", "expected a layer of full_attention or sliding_attention");
    return;
  }
  if (m.window == 0 && m.chunk == 0) return;
  const auto pattern = first_key(node, {"sliding_window_pattern", "_sliding_window_pattern"});
  if (m.chunk > 0 && node.has("no_rope_layers") && node.at("no_rope_layers").is_sequence()) {
    for (const auto& rope : node.at("no_rope_layers").items())
      ++(rope.as<std::int64_t>() == 0 ? m.full_layers : m.limited_layers);
  } else if (node.has(pattern)) {
    const auto all = size_under(node, "num_hidden_layers");
    m.full_layers = all / size_under(node, pattern);
    m.limited_layers = all - m.full_layers;
  } else if (node.has("max_window_layers")) {
    const auto all = size_under(node, "num_hidden_layers");
    m.full_layers = std::min(all, node.get_integer("max_window_layers", 0));
    m.limited_layers = all - m.full_layers;
    if (m.limited_layers == 0) m.window = 0;
  } else if (m.chunk > 0 && node.has("num_hidden_layers")) {
    constexpr std::int64_t usual_step = 4;  // Llama 4: every fourth layer sees everything
    m.full_layers = size_under(node, "num_hidden_layers") / usual_step;
    m.limited_layers = size_under(node, "num_hidden_layers") - m.full_layers;
  }
}

described configured(const model_file& file) {
  const auto& root = file.root;
  const auto& node = file.text;
  described m{.name = file.name};
  m.heads = size_under(node, first_key(node, {"num_attention_heads", "num_heads", "n_head"}));
  if (node.has("kv_lora_rank")) {
    m.kv_heads = m.heads;
    m.key_dim = size_under(node, "qk_nope_head_dim") + size_under(node, "qk_rope_head_dim");
    m.value_dim = size_under(node, "v_head_dim");
    m.latent = size_under(node, "kv_lora_rank");
    m.rotary = size_under(node, "qk_rope_head_dim");
  } else {
    m.kv_heads =
        node.has("num_key_value_heads") ? size_under(node, "num_key_value_heads") : m.heads;
    m.key_dim = m.value_dim = head_dim_of(node, m.heads);
  }
  if (root.has("_class_name")) m.mask = mask_kind::full;
  m.joint = root.has("joint_attention_dim");
  if (node.has("sliding_window") && node.get<bool>("use_sliding_window", true))
    m.window = node.get_integer("sliding_window", 0);
  if (node.has("attention_chunk_size")) m.chunk = size_under(node, "attention_chunk_size");
  read_layers(m, node);
  m.sinks = m.name == "gpt_oss";
  return m;
}

described find_model(const std::string& model) {
  const auto file = find_model_file(model);
  return file.listed ? listed(file.name, file.root) : configured(file);
}

void use_layers(attention& a, const described& m, layer_kind layer) {
  const auto all = m.limited_layers + m.full_layers + m.other_layers;
  if (m.other_layers > 0)
    a.notes.push_back(fmt::format(
        "{} of the {} layers of {} have no softmax attention: this is one of the others",
        m.other_layers, all, m.name));
  if (layer == layer_kind::window && m.chunk > 0)
    throw input_error(asked("layer"), "window",
                      fmt::format("{} has chunks of {} tokens that see their own only: expected "
                                  "documents of that length",
                                  m.name, m.chunk));
  if (layer == layer_kind::window && m.window == 0)
    throw input_error(asked("layer"), "window",
                      fmt::format("expected full: no layer of {} has a window", m.name));
  const bool limited = layer == layer_kind::window || !m.mixed();
  if (limited && m.mask == mask_kind::causal) a.window = m.window;
  if (!m.mixed()) return;
  const auto what = m.chunk > 0 ? fmt::format("see chunks of {} tokens", m.chunk)
                                : fmt::format("have a window of {} tokens", m.window);
  a.notes.push_back(fmt::format("{} of the {} layers of {} {}: this is one of {}", m.limited_layers,
                                all, m.name, what, limited ? "them" : "the others"));
}

}  // namespace

std::string_view name_of(layer_kind layer) {
  return find_name(layers, layer);
}
layer_kind parse_layer(std::string_view text) {
  return find_value(layers, text);
}

void use_absorbed(attention& a, const std::string& model) {
  use_model(a, model);
  const auto m = find_model(model);
  if (m.latent == 0)
    throw input_error(asked("latent"), fmt::format("{} has no latent attention", m.name));
  a.latent_rank = a.rotary = 0;
  a.kv_heads = 1;
  a.head_dim = m.latent + m.rotary;
  a.v_head_dim = m.latent;
}

layer_counts layers_of(const std::string& model) {
  const auto m = find_model(model);
  if (!m.mixed() || m.window == 0) return {};
  return {m.full_layers, m.limited_layers};
}

void use_model(attention& a, const std::string& model, layer_kind layer) {
  const auto m = find_model(model);
  a.heads = m.heads;
  a.kv_heads = m.kv_heads;
  a.mask = m.mask;
  a.head_dim = m.key_dim;
  a.v_head_dim = m.value_dim == m.key_dim ? 0 : m.value_dim;
  a.latent_rank = m.latent;
  a.rotary = m.latent > 0 ? m.rotary : 0;
  use_layers(a, m, layer);
  a.sinks = m.sinks;
  if (m.joint) a.notes.push_back("the sequence holds text and image tokens together");
}

}  // namespace attnsim
