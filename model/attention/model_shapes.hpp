// Attention shapes of published models, from topologies/models.yaml.
#pragma once

#include <string>
#include <vector>

#include "model/attention/attention.hpp"

namespace attnsim {

/// Sets heads, kv_heads and head_dim to those of model `name`. Throws input_error that lists the names.
void use_model_shape(attention&, const std::string& name);

}  // namespace attnsim
