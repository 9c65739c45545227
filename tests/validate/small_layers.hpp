// Layers small enough to be checked element by element, cut in all ways over a few ranks.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "model/schedule/algorithms/schedules.hpp"
#include "validate/layer/layer_executor.hpp"
#include "validate/layer/layer_oracle.hpp"

namespace attnsim::validate {

inline transformer small_model() {
  transformer t{.name = "small", .layers = 1, .hidden = 24, .intermediate = 20};
  t.shape = {.heads = 4, .kv_heads = 2, .head_dim = 8, .mask = mask_kind::causal};
  return t;
}

/// Four experts, two a token.
inline transformer small_expert_model() {
  auto t = small_model();
  t.experts = 4;
  t.active_experts = 2;
  t.expert_intermediate = 12;
  return t;
}

inline cluster small_cluster() {
  return read_cluster(config_node::parse_text(
      "name: small\n"
      "device: {name: small, source: round numbers, peak: {half: 1 GFLOP/s, fp32: 1 GFLOP/s}, "
      "memory: {capacity: 8 GiB, bandwidth: 1 GB/s}, multiprocessors: 1}\n"
      "nodes: 4\ndevices_per_node: 1\nnode: {links: none}\n"
      "nics: {per_node: 1, bandwidth: 50 GB/s, latency: 1 us}\nfabric: {kind: star}\n",
      "small.yaml"));
}

struct layer_case {
  degrees cut;
  strategy chosen = {.schedule = "ring"};
  data_type type = data_type::fp32;
  bool shards = false;
  std::int64_t batch = 1;
  recomputation recomputed = recomputation::none;
  bool adds = true;
  transformer model = small_model();
};

inline std::string label(const layer_case& c) {
  return fmt::format("tp {} cp {} dp {} ep {}, {} experts, {}, {}{}", c.cut.tensor, c.cut.context,
                     c.cut.data, c.cut.expert, c.model.experts, c.chosen.schedule, name_of(c.type),
                     c.shards ? ", sharded" : "");
}

inline std::string listed(const layer_numerics& found) {
  std::string text;
  for (const auto& e : found.errors) text += fmt::format("{}: {}\n", e.what, e.relative);
  return text;
}

/// 16 tokens.
inline std::unique_ptr<layer_plan> plan_of(const layer_case& c, const cluster& on) {
  auto a = c.model.shape;
  a.sequence = 16;
  a.batch = c.batch;
  a.dtype = c.type;
  auto s = c.chosen;
  s.tensor_parallel = c.cut.tensor;
  const layer_setting setting{.model = c.model,
                              .cut = c.cut,
                              .tokens = a.sequence * a.batch / c.cut.context,
                              .recomputed = c.recomputed,
                              .adds_gradients = c.adds};
  return std::make_unique<layer_plan>(on, setting, c.shards, a,
                                      complete(s, a, c.cut.tensor * c.cut.context));
}

/// Of `least` to `most` ranks: tensor, context, data and expert ranks, six schedules, both types, several sequences.
inline std::vector<layer_case> layer_cases(int least, int most) {
  const std::vector<layer_case> all{
      {},
      {.batch = 2, .recomputed = recomputation::full},
      {.batch = 2, .recomputed = recomputation::selective},
      {.cut = {.tensor = 2}, .recomputed = recomputation::selective},
      {.type = data_type::bf16, .adds = false},
      {.cut = {.tensor = 2}},
      {.cut = {.tensor = 2}, .type = data_type::bf16, .batch = 2},
      {.cut = {.context = 2}},
      {.cut = {.context = 2}, .chosen = {.schedule = "allgather"}, .batch = 2},
      {.cut = {.context = 2}, .chosen = {.schedule = "mesh"}, .type = data_type::bf16},
      {.cut = {.context = 2}, .chosen = {.schedule = "ulysses", .ulysses = 0}},
      {.cut = {.context = 2}, .chosen = {.schedule = "ring", .tokens = token_layout::striped}},
      {.cut = {.data = 2}, .shards = true, .adds = false},
      {.cut = {.data = 2}, .type = data_type::bf16, .shards = true, .adds = false},
      {.batch = 2, .recomputed = recomputation::full, .model = small_expert_model()},
      {.recomputed = recomputation::selective, .adds = false, .model = small_expert_model()},
      {.cut = {.data = 2}, .model = small_expert_model()},
      {.cut = {.data = 2, .expert = 2}, .batch = 2, .model = small_expert_model()},
      {.cut = {.context = 2, .expert = 2},
       .recomputed = recomputation::full,
       .model = small_expert_model()},
      {.cut = {.tensor = 2, .expert = 2},
       .recomputed = recomputation::selective,
       .model = small_expert_model()},
      {.cut = {.data = 2, .expert = 2},
       .type = data_type::bf16,
       .adds = false,
       .model = small_expert_model()},
      {.cut = {.tensor = 2, .data = 2, .expert = 2}, .model = small_expert_model()},
      {.cut = {.context = 2, .data = 2, .expert = 4},
       .chosen = {.schedule = "ring", .tokens = token_layout::contiguous},
       .model = small_expert_model()},
      {.cut = {.tensor = 2, .context = 2}},
      {.cut = {.tensor = 2, .context = 2},
       .chosen = {.schedule = "allgather"},
       .type = data_type::bf16,
       .batch = 2},
      {.cut = {.context = 2, .data = 2}, .shards = true, .adds = false},
      {.cut = {.tensor = 2, .data = 2}, .type = data_type::bf16, .shards = true}};
  std::vector<layer_case> some;
  for (const auto& c : all) {
    if (c.cut.ranks() >= least && c.cut.ranks() <= most) some.push_back(c);
  }
  return some;
}

inline layer_numerics run_layer(const layer_plan& plan, const layer_oracle& expected, transport& t,
                                kernels::backend& device) {
  layer_executor runs(plan, t, device);
  expected.load(runs, t);
  runs.forward();
  runs.backward();
  return expected.check(runs, t);
}

}  // namespace attnsim::validate
