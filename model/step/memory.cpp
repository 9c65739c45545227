#include "model/step/memory.hpp"

#include <algorithm>

#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<sharding, 4> shardings{{{sharding::none, "none"},
                                             {sharding::optimizer, "optimizer"},
                                             {sharding::gradients, "gradients"},
                                             {sharding::parameters, "parameters"}}};

constexpr double half = 2, single = 4;  ///< bytes of a number
constexpr double adam = 3 * single;     ///< fp32 copy and two moments

double embedding_tables(const layer_setting& s, const held_layers& held) {
  const int tables = held.embedding && held.loss   ? (s.model.tied ? 1 : 2)
                     : held.embedding || held.loss ? 1
                                                   : 0;
  return tables * s.model.embedding_parameters() / s.cut.tensor;
}

/// States of parameters of which there are `replicas`.
void add_states(step_memory& m, double parameters, double replicas, sharding sharded) {
  const auto over = [&](sharding level) { return sharded >= level ? replicas : 1; };
  if (sharded == sharding::parameters) {
    m.parameters += parameters * single / replicas;
    m.optimizer += parameters * (adam - single) / replicas;
  } else {
    m.parameters += parameters * half;
    m.optimizer += parameters * adam / over(sharding::optimizer);
  }
  m.gradients += parameters * single / over(sharding::gradients);
}

double layer_parameters(const layer_setting& s) {
  return dense_parameters_a_rank(s) + expert_parameters_a_rank(s);
}

/// The mean over the held layers of what `bytes` says of one.
template <typename Bytes>
double mean_over(const held_layers& held, const layer_setting& s, Bytes bytes) {
  if (held.dense == 0) return bytes(s);
  const double share = static_cast<double>(held.dense) / held.layers;
  return (1 - share) * bytes(s) + share * bytes(without_experts(s));
}

}  // namespace

std::string_view name_of(sharding s) {
  return find_name(shardings, s);
}
sharding parse_sharding(std::string_view text) {
  return find_value(shardings, text);
}

double parameters_of(const layer_setting& s, const held_layers& held) {
  return held.layers * mean_over(held, s, dense_parameters_a_rank) + embedding_tables(s, held);
}

double expert_parameters_of(const layer_setting& s, const held_layers& held) {
  return (held.layers - held.dense) * expert_parameters_a_rank(s);
}

step_memory memory_of(const layer_setting& s, sharding sharded, const held_layers& held) {
  step_memory m;
  add_states(m, parameters_of(s, held), s.cut.replicas(), sharded);
  add_states(m, expert_parameters_of(s, held), s.cut.expert_replicas(), sharded);
  m.activations = mean_over(held, s, kept_bytes) * held.layers_in_flight;
  const double loss = held.loss ? loss_bytes(s) : 0;
  const bool in_layer = held.attention_buffers + working_bytes(s) >= loss;
  m.buffers = in_layer ? held.attention_buffers : 0;
  m.workspace = in_layer ? working_bytes(s) : loss;
  if (sharded == sharding::parameters) {
    constexpr int gathered_layers = 2;
    m.buffers += s.cut.pipeline > 1
                     ? (parameters_of(s, held) + expert_parameters_of(s, held)) * (half + single)
                     : layer_parameters(s) * (gathered_layers * half + single) +
                           embedding_tables(s, held) * half;
  }
  return m;
}

step_memory memory_of_prefill(const layer_setting& s, const held_layers& held,
                              double cached_bytes_a_layer) {
  step_memory m;
  const double element = s.linear == product_type::fp8 ? 1 : half;
  m.parameters = held.layers * mean_over(held, s, layer_parameters) * element +
                 embedding_tables(s, held) * half;
  m.activations = held.layers * cached_bytes_a_layer;
  m.buffers = held.attention_buffers;
  m.workspace = working_bytes(s);
  return m;
}

}  // namespace attnsim
