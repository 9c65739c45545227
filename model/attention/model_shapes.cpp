#include "model/attention/model_shapes.hpp"

#include <fmt/format.h>

#include "model/config.hpp"
#include "model/topology_files.hpp"

namespace attnsim {

void use_model_shape(attention& a, const std::string& name) {
  const auto models = config_node::load(find_topology_file("", "models"));
  std::string names;
  for (const auto& [key, shape] : models.entries()) {
    if (key == name) {
      shape.allow_only({"heads", "kv_heads", "head_dim"});
      a.heads = shape.get_integer("heads", 1);
      a.kv_heads = shape.get_integer("kv_heads", 1);
      a.head_dim = shape.get_integer("head_dim", 1);
      return;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", key);
  }
  throw input_error(asked("model"), name, "expected one of: " + names);
}

}  // namespace attnsim
