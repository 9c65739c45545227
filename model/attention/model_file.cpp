#include "model/attention/model_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "model/attention/model_shapes.hpp"
#include "model/spelling.hpp"
#include "model/topology_files.hpp"

namespace attnsim {
namespace {

config_node list_of_models() {
  return config_node::load(find_topology_file("", "models"));
}

model_file configuration(const config_node& root) {
  const auto name = root.has("model_type")    ? root.get<std::string>("model_type")
                    : root.has("_class_name") ? root.get<std::string>("_class_name")
                                              : "the model";
  return {name, false, root, root.has("text_config") ? root.at("text_config") : root};
}

}  // namespace

model_file find_model_file(const std::string& model) {
  if (model.starts_with('{')) return configuration(config_node::parse_text(model, "config.json"));
  std::error_code ignored;
  if (std::filesystem::exists(model, ignored)) return configuration(config_node::load(model));
  if (const auto list = list_of_models(); list.has(model))
    return {model, true, list.at(model), list.at(model)};
  const auto names = known_models();
  throw input_error(asked("model"), model,
                    fmt::format("expected a config.json or one of: {}{}", fmt::join(names, ", "),
                                did_you_mean(model, names)));
}

std::vector<std::string> known_models() {
  std::vector<std::string> names;
  for (const auto& [name, shape] : list_of_models().entries()) names.push_back(name);
  return names;
}

std::string_view first_key(const config_node& node, std::initializer_list<std::string_view> keys) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](auto key) { return node.has(key); });
  return found == keys.end() ? *keys.begin() : *found;
}

std::int64_t size_under(const config_node& node, std::string_view key) {
  constexpr std::int64_t most = std::int64_t{1} << 40;  // tokens, heads, elements
  const auto size = node.get_integer(key, 1);
  if (size > most) node.fail(key, fmt::format("expected at most {}", most));
  return size;
}

void allow_model_keys(const config_node& row) {
  row.allow_only({"heads",        "kv_heads",   "head_dim", "value_head_dim", "latent",
                  "query_latent", "rotary",     "mask",     "window",         "chunk",
                  "layers",       "sinks",      "joint",    "hidden",         "intermediate",
                  "depth",        "vocabulary", "mlp",      "tied",           "experts"});
}

}  // namespace attnsim
