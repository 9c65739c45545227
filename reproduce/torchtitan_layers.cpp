// Layers of Llama 3.1 8B as torchtitan trains them, measured on H200 with PyTorch (tests/gpu/titan.py). Nothing is fitted to them: the
// shipped profiles, of which FlashAttention-2 and products were measured by themselves.
#include <fmt/format.h>

#include "ask/step.hpp"
#include "reproduce/published.hpp"
#include "reproduce/studies.hpp"

namespace attnsim::reproduce {
namespace {

ask::step_question layer_question(const published_row& row) {
  ask::step_question q;
  q.model = "llama3.1-8b";
  const auto ranks = row.integer("ranks");
  // Two GPUs share parameters, one GPU does as if it shared them, one rank without the others has its own.
  const auto ran_on = row.text("series");
  const bool sharded = ran_on != "one rank";
  set(q, "ranks", ran_on == "two GPUs" ? "2" : row.text("ranks"));
  set(q, "cp", row.text("ranks"));
  set(q, "seq", std::to_string(ranks * row.integer("tokens_a_rank")));
  for (const auto* field : {"kernel", "schedule", "tokens"}) set(q, field, row.text(field));
  if (ranks > 1) set(q, "framework", "torchtitan");
  q.recompute = recomputation::full;
  q.shard = sharded ? sharding::parameters : sharding::none;
  q.eager = row.text("compiled") == "no";
  return q;
}

/// What a fourth layer adds to a step of three.
ask::part_times predicted_layer(const published_row& row) {
  const auto q = layer_question(row);
  const auto c = cluster_of(row);
  ask::known_parts known(c);
  auto t = read_transformer(q.model);
  t.layers = 3;
  const auto three = ask::answer(q, c, t, known, ask::step_detail::time_only).parts;
  t.layers = 4;
  const auto four = ask::answer(q, c, t, known, ask::step_detail::time_only).parts;
  auto layer = ask::operator+(four, ask::operator*(-1.0, three));
  layer[static_cast<std::size_t>(ask::step_part::optimizer)] = 0;
  return layer;
}

}  // namespace

result torchtitan_layers() {
  result r{.unit = "ms"};
  for (const auto& row : published("torchtitan-layers")) {
    const auto layer = predicted_layer(row);
    const auto figure = fmt::format("{}, cp {}, {} K tokens, {}, {}, {}", row.text("series"),
                                    row.text("ranks"), row.integer("tokens_a_rank") / 1024,
                                    row.text("kernel"), row.text("schedule"), row.text("tokens"));
    const bool compiled = row.text("compiled") == "yes";
    const auto add = [&](const char* kind, const char* column, double seconds) {
      r.points.push_back({fmt::format("{} {}", compiled ? "compiled" : "eager", kind), figure,
                          row.number(column), 1e3 * seconds});
    };
    const auto part = [&](ask::step_part p) { return layer[static_cast<std::size_t>(p)]; };
    add("layer", "time_ms", ask::sum_of(layer));
    add("products", "products_ms", part(ask::step_part::products));
    add("attention", "attention_ms", part(ask::step_part::attention));
    add("elementwise", "elementwise_ms", part(ask::step_part::elementwise));
  }
  r.assumptions = {
      "attention by PyTorch's FlashAttention-2, keys and values repeated for all query heads; "
      "where no rank shares the sequence also by cuDNN 9.19, which PyTorch 2.11 chooses there",
      "one rank by itself, of 2, 4 and 8: links so fast that an exchange takes no time"};
  r.notes = {
      "products and attention share a clock under the card's power limit, whose numbers are of "
      "other runs (measured/h200-power), as are rates of eager elementwise operations. Compiled "
      "ones move more than is counted: FSDP casts and copies, and PyTorch compiles no complex "
      "numbers",
      "compiled without load balance two GPUs waited until NCCL's time-out: a rank that skips "
      "pairs of tokens gathers keys and values of its backward pass after gradients have moved, "
      "the other before (tests/gpu/ring_trace.py tells)"};
  return r;
}

}  // namespace attnsim::reproduce
