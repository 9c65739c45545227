#include "ask/step_run.hpp"

#include <algorithm>

#include "model/step/pipeline.hpp"

namespace attnsim::ask {
namespace {

std::vector<seconds> times_of(const std::vector<part_times>& parts) {
  std::vector<seconds> times;
  for (const auto& p : parts) times.emplace_back(sum_of(p));
  return times;
}

}  // namespace

std::vector<layer_row> stage_layers(const degrees& cut, const transformer& t) {
  const int stages = cut.pipeline * cut.chunks;
  std::vector<layer_row> rows(static_cast<std::size_t>(stages));
  int dense = t.experts > 0 ? t.dense_layers : 0;
  for (int i = 0; i < stages; ++i) {
    const int count = t.layers / stages + (i < t.layers % stages ? 1 : 0);
    auto& row = rows[static_cast<std::size_t>(i)];
    row.dense = std::min(dense, count);
    row.others = count - row.dense;
    dense -= row.dense;
  }
  return rows;
}

step_run::step_run(const step_costs& costs, const layer_setting& s, step_task task,
                   sharding sharded, int micro_batches, std::int64_t sequences)
    : costs_(costs),
      setting_(s),
      task_(task),
      sharding_(sharded),
      micro_batches_(micro_batches),
      sequences_(sequences),
      rows_(stage_layers(s.cut, s.model)) {}

part_times step_run::parts(double scale) const {
  return task_ == step_task::prefill ? prefill(scale) : train(scale);
}

held_layers step_run::held(int rank) const {
  const auto& cut = setting_.cut;
  held_layers h{.embedding = rank == 0, .loss = rank == cut.pipeline - 1};
  for (int c = 0; c < cut.chunks; ++c) {
    const auto& row = rows_[static_cast<std::size_t>(c * cut.pipeline + rank)];
    h.layers += row.count();
    h.dense += row.dense;
  }
  const auto chunks = chunks_in_flight(cut.pipeline, cut.chunks, micro_batches_, rank);
  h.layers_in_flight = static_cast<double>(h.layers) / cut.chunks * chunks;
  return h;
}

part_times step_run::pass_over(std::size_t stage, pass_kind pass, beside data, double scale) const {
  auto total = costs_.layers(pass, rows_[stage], data, scale);
  if (stage == 0) total = total + costs_.embedding(pass);
  const bool last = stage + 1 == rows_.size();
  if (last && task_ == step_task::train) total = total + costs_.loss(pass);
  return total;
}

/// Equal stages are run once.
std::vector<part_times> step_run::passes(pass_kind pass, beside data, double scale) const {
  std::vector<part_times> all;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool as_before = i > 1 && i + 1 < rows_.size() && rows_[i] == rows_[i - 1];
    all.push_back(as_before ? all.back() : pass_over(i, pass, data, scale));
  }
  return all;
}

step_run::stage_parts step_run::stages(double scale) const {
  const bool every = sharding_ == sharding::parameters && setting_.cut.pipeline == 1;
  const bool reduces = every || sharding_ == sharding::gradients;
  const bool gathers_once = sharding_ != sharding::none && !every;
  stage_parts p;
  p.forward = passes(pass_kind::forward, {.gathers = every}, scale);
  p.first_forward = gathers_once ? passes(pass_kind::forward, {.gathers = true}, scale) : p.forward;
  p.backward = passes(pass_kind::backward, {.gathers = every, .reduces = reduces}, scale);
  p.last_backward = reduces ? p.backward : passes(pass_kind::backward, {.reduces = true}, scale);
  const auto tables = setting_.model.embedding_parameters() / setting_.cut.tensor;
  p.last_backward.front() = p.last_backward.front() + costs_.exposed_reduction(tables);
  return p;
}

part_times step_run::train(double scale) const {
  const auto& cut = setting_.cut;
  const auto p = stages(scale);
  const auto run = run_pipeline(cut.pipeline, cut.chunks, micro_batches_,
                                {.forward = times_of(p.forward),
                                 .backward = times_of(p.backward),
                                 .first_forward = times_of(p.first_forward),
                                 .last_backward = times_of(p.last_backward),
                                 .send = costs_.send()});
  part_times total{};
  for (int c = 0; c < cut.chunks; ++c) {
    const auto i = static_cast<std::size_t>(c * cut.pipeline + run.slowest);
    total = total + p.first_forward[i] + p.last_backward[i] +
            (micro_batches_ - 1) * (p.forward[i] + p.backward[i]);
  }
  total[static_cast<std::size_t>(step_part::bubble)] += run.bubble().value();
  const auto h = held(run.slowest);
  return total + costs_.optimizer(parameters_of(setting_, h), expert_parameters_of(setting_, h));
}

/// A batch's micro-batches follow each other through the stages; the last one's first tokens end it.
part_times step_run::prefill(double scale) const {
  const auto stages = passes(pass_kind::forward, {}, scale);
  part_times total{}, longest{};
  for (const auto& stage : stages) {
    total = total + stage;
    if (sum_of(stage) > sum_of(longest)) longest = stage;
  }
  total = total + (micro_batches_ - 1) * longest;
  total[static_cast<std::size_t>(step_part::bubble)] +=
      (setting_.cut.pipeline - 1) * costs_.send().value();
  return total + costs_.logits_of(static_cast<double>(sequences_));
}

}  // namespace attnsim::ask
