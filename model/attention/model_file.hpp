// Where a model is described: a row of topologies/models.yaml, or a config.json as Hugging Face's transformers and diffusers
// write them. model_shapes.hpp reads its attention, layer/transformer.hpp all of its layers.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "model/config.hpp"

namespace attnsim {

struct model_file {
  std::string name;
  bool listed = false;  ///< a row of the list: its keys are the list's
  config_node root;     ///< the row, or all of the configuration
  config_node text;     ///< what describes the language model: `text_config` where there is one
};

/// `model` is a name of the list, a file, or the text of a config.json itself (it begins with a brace). Throws input_error for
/// an unknown name (lists the known ones) and for text that cannot be read.
model_file find_model_file(const std::string& model);

/// The first of the keys that the configuration has, or the first.
std::string_view first_key(const config_node&, std::initializer_list<std::string_view> keys);

/// A whole number of at least 1 and at most 2^40 under the key. Throws input_error.
std::int64_t size_under(const config_node&, std::string_view key);

/// The keys that a row of the list may hold.
void allow_model_keys(const config_node& row);

}  // namespace attnsim
