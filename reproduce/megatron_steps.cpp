// Training steps of GPT models on 8 to 512 A100 by Megatron-LM, before FlashAttention: tensor and pipeline parallel. Nothing is
// fitted, no context parallelism: a check of products, exchanges and the pipeline.
#include <fmt/format.h>

#include "ask/step.hpp"
#include "reproduce/published.hpp"
#include "reproduce/studies.hpp"

namespace attnsim::reproduce {
namespace {

std::string configuration_of(const published_row& row) {
  return fmt::format(
      R"({{"model_type": "gpt2", "n_embd": {}, "n_layer": {}, "n_head": {}, "vocab_size": 51200}})",
      row.text("hidden"), row.text("layers"), row.text("heads"));
}

ask::step_question megatron_question(const published_row& row) {
  ask::step_question q;
  q.model = configuration_of(row);
  set(q, "seq", "2048");
  set(q, "tp", "8");
  set(q, "pp", row.text("pp"));
  set(q, "vp", row.text("vp"));
  set(q, "global-batch", row.text("global_batch"));
  set(q, "micro-batch", row.text("micro_batch"));
  set(q, "recompute", row.text("recompute"));
  if (row.integer("vp") == 1) q.chunks = {};
  return q;
}

}  // namespace

result megatron_steps() {
  result r{.unit = "s of a step"};
  for (const auto& row : published("megatron-steps")) {
    const auto c = read_cluster("ndm-a100-v4", {.nodes = row.integer("gpus") / 8});
    const auto a = ask::answer(megatron_question(row), c);
    r.points.push_back({"recompute " + row.text("recompute"),
                        fmt::format("{} on {} A100", row.text("model"), row.text("gpus")),
                        row.number("seconds"), a.time.value()});
    if (!a.feasible) r.notes.push_back(a.warnings.front());
  }
  r.assumptions = {
      "attention by FlashAttention-2, which the runs did not have: theirs took longer, and the "
      "small model spends most on it",
      "elementwise operations fused, tensor exchanges not overlapped, A100 products scaled from a "
      "published maximum (topologies/devices/a100-sxm4-80gb.yaml)"};
  return r;
}

}  // namespace attnsim::reproduce
