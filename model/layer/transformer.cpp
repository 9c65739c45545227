#include "model/layer/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "model/attention/model_file.hpp"
#include "model/attention/model_shapes.hpp"
#include "model/attention/tokens.hpp"

namespace attnsim {
namespace {

constexpr int most_layers = 10'000;
constexpr int most_experts = 100'000;

int count_of(const config_node& node, std::string_view key, int most) {
  return node.get_within(key, 1, most);
}

void read_listed(transformer& t, const config_node& row) {
  if (!row.has("hidden")) {
    throw input_error(asked("model"), t.name,
                      "the list has its attention only: expected a config.json, or a model whose "
                      "row of topologies/models.yaml has hidden, intermediate, depth, vocabulary");
  }
  t.hidden = size_under(row, "hidden");
  t.intermediate = size_under(row, "intermediate");
  t.layers = count_of(row, "depth", most_layers);
  t.vocabulary = size_under(row, "vocabulary");
  if (row.has("mlp")) {
    const auto kind = row.get<std::string>("mlp");
    if (kind != "gated" && kind != "dense") row.fail("mlp", "expected gated or dense");
    t.gated = kind == "gated";
  }
  t.tied = row.get<bool>("tied", false);
  t.latent = row.get_integer("latent", 1, 0);
  t.rotary = row.get_integer("rotary", 1, 0);
  t.query_latent = row.get_integer("query_latent", 1, 0);
  if (!row.has("experts")) return;
  const auto experts = row.at("experts");
  experts.allow_only({"count", "active", "shared", "width", "dense"});
  t.experts = count_of(experts, "count", most_experts);
  t.active_experts = experts.get_within("active", 1, t.experts);
  t.expert_intermediate = experts.get_integer("width", 1, t.intermediate);
  t.dense_layers = experts.has("dense") ? experts.get_within("dense", 0, t.layers) : 0;
  t.shared_intermediate = experts.get_integer("shared", 1, 0);
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void read_experts(transformer& t, const config_node& node) {
  const auto key = first_key(node, {"num_local_experts", "num_experts", "n_routed_experts"});
  if (!node.has(key) || node.get_integer(key, 0) < 2) return;
  t.experts = count_of(node, key, most_experts);
  t.active_experts =
      node.get_within(first_key(node, {"num_experts_per_tok", "moe_top_k"}), 1, t.experts);
  t.expert_intermediate =
      size_under(node, first_key(node, {"moe_intermediate_size", "intermediate_size"}));
  if (node.has("shared_expert_intermediate_size")) {
    t.shared_intermediate = node.get_integer("shared_expert_intermediate_size", 0);
  } else if (node.has("n_shared_experts")) {
    t.shared_intermediate = node.get_integer("n_shared_experts", 0) * t.expert_intermediate;
  }
  if (node.has("first_k_dense_replace"))
    t.dense_layers = node.get_within("first_k_dense_replace", 0, t.layers);
}

void read_latents(transformer& t, const config_node& node) {
  if (!node.has("kv_lora_rank")) return;
  t.latent = size_under(node, "kv_lora_rank");
  t.rotary = size_under(node, "qk_rope_head_dim");
  if (node.has("q_lora_rank")) t.query_latent = size_under(node, "q_lora_rank");
}

void read_configured(transformer& t, const config_node& node) {
  t.hidden = size_under(node, first_key(node, {"hidden_size", "n_embd", "dim"}));
  t.layers =
      count_of(node, first_key(node, {"num_hidden_layers", "n_layer", "num_layers"}), most_layers);
  t.vocabulary = size_under(node, "vocab_size");
  constexpr int usual_ratio = 4;  // GPT-2 leaves the MLP's width out
  const auto width = first_key(node, {"intermediate_size", "ffn_dim", "n_inner"});
  t.intermediate = node.has(width) ? size_under(node, width) : usual_ratio * t.hidden;
  t.gated = !is_one_of(t.name, {"gpt2", "gpt_neox", "gptj", "opt", "bloom", "falcon", "phi",
                                "starcoder2", "gpt_bigcode"});
  t.tied = node.get<bool>("tie_word_embeddings", t.name == "gpt2");
  read_latents(t, node);
  read_experts(t, node);
}

/// How many of the layers have a window, where some have.
void read_limited(transformer& t, const std::string& model, const config_node& node, bool listed) {
  if (t.shape.window > 0) return;  // all of them
  try {
    use_model(t.limited, model, layer_kind::window);
  } catch (const input_error&) {
    return;
  }
  if (listed) {
    t.limited_layers = node.at("layers").get_within("limited", 1, t.layers);
  } else if (node.has("layer_types")) {
    for (const auto& type : node.at("layer_types").items())
      t.limited_layers += type.as<std::string>() == "sliding_attention" ? 1 : 0;
  } else {
    const auto pattern = first_key(node, {"sliding_window_pattern", "_sliding_window_pattern"});
    if (node.has(pattern))
      t.limited_layers = t.layers - t.layers / count_of(node, pattern, most_layers);
    if (node.has("max_window_layers"))
      t.limited_layers =
          t.layers - std::min<int>(t.layers, node.get_within("max_window_layers", 0, most_layers));
  }
}

}  // namespace

double transformer::latent_parameters() const {
  return static_cast<double>(hidden) * static_cast<double>(latent_width());
}

double transformer::attention_parameters() const {
  const auto h = static_cast<double>(hidden), query = static_cast<double>(query_width());
  const double output = h * static_cast<double>(output_width());
  if (latent == 0) return h * (query + static_cast<double>(key_width() + value_width())) + output;
  const double queries = (query_latent > 0 ? static_cast<double>(query_latent) : h) * query;
  return latent_parameters() + queries +
         static_cast<double>(latent) * static_cast<double>(expanded_width()) + output;
}

double transformer::norm_parameters() const {
  return static_cast<double>(2 * hidden + (latent > 0 ? query_latent + latent : 0));
}

double transformer::dense_parameters(std::int64_t width) const {
  return static_cast<double>(products_before_activation() + 1) * static_cast<double>(hidden) *
         static_cast<double>(width);
}

double transformer::expert_parameters() const {
  return dense_parameters(expert_intermediate);
}

namespace {

double layer_parameters_with(const transformer& t, int experts) {
  const double common = t.attention_parameters() + t.norm_parameters();
  if (t.experts == 0) return common + t.dense_parameters(t.intermediate);
  const double sparse = static_cast<double>(t.hidden) * t.experts +
                        experts * t.expert_parameters() + t.dense_parameters(t.shared_intermediate);
  const double dense_share = static_cast<double>(t.dense_layers) / t.layers;
  return common + dense_share * t.dense_parameters(t.intermediate) + (1 - dense_share) * sparse;
}

}  // namespace

double transformer::layer_parameters() const {
  return layer_parameters_with(*this, experts);
}

double transformer::active_layer_parameters() const {
  return layer_parameters_with(*this, active_experts);
}

double transformer::embedding_parameters() const {
  return static_cast<double>(vocabulary) * static_cast<double>(hidden);
}

double transformer::parameters() const {
  return layers * layer_parameters() + (tied ? 1 : 2) * embedding_parameters() +
         static_cast<double>(hidden);
}

double transformer::active_parameters() const {
  return parameters() - layers * (layer_parameters() - active_layer_parameters());
}

transformer read_transformer(const std::string& model) {
  const auto file = find_model_file(model);
  transformer t{.name = file.name};
  use_model(t.shape, model);
  t.limited = t.shape;
  if (file.listed) {
    read_listed(t, file.root);
  } else {
    read_configured(t, file.text);
  }
  read_limited(t, model, file.text, file.listed);
  return t;
}

double model_operations_a_token(const transformer& t, std::int64_t sequence, std::int64_t prefix) {
  const auto of_layer = [&](attention a) {
    a.sequence = sequence;
    a.prefix = prefix;
    a.batch = 1;
    return 6 * static_cast<double>(visible_pairs(a)) / static_cast<double>(sequence) *
           static_cast<double>(t.query_width() + t.output_width());
  };
  const double multiplied =
      t.layers * (t.active_layer_parameters() - t.norm_parameters()) + t.embedding_parameters();
  return 6 * multiplied + (t.layers - t.limited_layers) * of_layer(t.shape) +
         t.limited_layers * of_layer(t.limited);
}

}  // namespace attnsim
