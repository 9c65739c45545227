#include "validate/layer/validate_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/backends.hpp"
#include "model/error.hpp"
#include "validate/transports/inprocess.hpp"
#include "validate/transports/mpi.hpp"
#include "validate/transports/nccl.hpp"
#include "validate/validate.hpp"

namespace attnsim::validate {
namespace {

using ask::step_part;

/// What all ranks of a process share.
struct prepared_layer {
  explicit prepared_layer(const layer_request& r)
      : request(r),
        known(r.on),
        predicted(predict(r)),
        plan(r.on, predicted.setting, predicted.shard == sharding::parameters,
             predicted.attention.problem, predicted.attention.chosen) {
    if (r.checks) expected = std::make_unique<layer_oracle>(plan);
  }

  ask::layer_answer predict(const layer_request& r) {
    if (r.question.model.empty()) throw input_error(asked("model"), "is required");
    if (r.question.task == ask::step_task::prefill)
      throw input_error(asked("task"), "prefill", "expected train: both passes are run");
    return ask::layer_of(r.question, r.on, read_transformer(r.question.model), known,
                         ask::layer_runner::executor);
  }

  const layer_request& request;
  ask::known_parts known;
  ask::layer_answer predicted;
  layer_plan plan;
  std::unique_ptr<layer_oracle> expected;
};

/// Of the rank that took longest.
layer_pass_times slowest(const layer_pass_times& own, transport& t) {
  std::vector<double> numbers{own.end.value()};
  for (const auto span : own.spans) numbers.push_back(span.value());
  blob data(numbers.size() * sizeof(double));
  std::memcpy(data.data(), numbers.data(), data.size());
  layer_pass_times worst;
  for (const auto& other : t.share(data)) {
    std::memcpy(numbers.data(), other.data(), other.size());
    if (seconds(numbers[0]) <= worst.end) continue;
    worst.end = seconds(numbers[0]);
    worst.spans.clear();
    for (std::size_t i = 1; i < numbers.size(); ++i) worst.spans.emplace_back(numbers[i]);
  }
  return worst;
}

layer_pass compared(pass_kind pass, const std::vector<layer_operation>& list,
                    const ask::part_times& predicted, std::vector<layer_pass_times> runs) {
  layer_pass result{.pass = pass};
  for (const auto& run : runs) result.durations.push_back(run.end);
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const auto& a, const auto& b) { return a.end < b.end; });
  ask::part_times measured{};
  for (std::size_t i = 0; i < list.size(); ++i) {
    measured[static_cast<std::size_t>(ask::part_of(list[i]))] += middle->spans[i].value();
    result.operations.push_back(
        {.name = std::string(list[i].name), .predicted = {}, .measured = middle->spans[i]});
  }
  result.total = {"total", seconds(ask::sum_of(predicted)), middle->end};
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (measured[i] > 0 || predicted[i] > 0)
      result.parts.push_back(
          {std::string(name_of(step_part(i))), seconds(predicted[i]), seconds(measured[i])});
  }
  return result;
}

layer_validation run_rank(const prepared_layer& p, transport& t) {
  constexpr int warm_ups = 2;
  const auto& r = p.request;
  const auto device = kernels::make_device(
      r.kernel, {.local_rank = t.local_rank(), .local_ranks = t.local_ranks()});
  layer_executor runs(p.plan, t, *device);
  layer_validation v{.rank = t.rank(), .predicted = p.predicted, .computed = r.checks};
  r.checks ? p.expected->load(runs, t) : runs.load_random();
  for (int i = 0; i < warm_ups; ++i) {
    runs.forward();
    runs.backward();
  }
  if (r.checks) v.numbers = p.expected->check(runs, t);
  std::vector<layer_pass_times> forward, backward;
  std::vector<seconds> both;
  while (!are_enough(both, r.repeats)) {
    forward.push_back(slowest(runs.forward(), t));
    backward.push_back(slowest(runs.backward(), t));
    both.push_back(forward.back().end + backward.back().end);
  }
  v.passes.push_back(
      compared(pass_kind::forward, p.plan.forward, p.predicted.forward, std::move(forward)));
  v.passes.push_back(
      compared(pass_kind::backward, p.plan.backward, p.predicted.backward, std::move(backward)));
  v.total.name = "total";
  for (const auto& pass : v.passes) {
    v.total.predicted += pass.total.predicted;
    v.total.measured += pass.total.measured;
  }
  return v;
}

}  // namespace

layer_validation validate_layer(const layer_request& r, transport& t) {
  require_possible(r.kernel, r.transport);
  const prepared_layer p(r);
  if (t.ranks() != p.predicted.setting.cut.ranks()) {
    throw input_error(asked("ranks"), std::to_string(p.predicted.setting.cut.ranks()),
                      fmt::format("the {} ranks of the job", t.ranks()));
  }
  return run_rank(p, t);
}

layer_validation validate_layer(const layer_request& r) {
  require_possible(r.kernel, r.transport);
  if (r.transport == "mpi") return validate_layer(r, *join_mpi(r.time_out));
  if (r.transport == "nccl")
    return validate_layer(r, *join_nccl({.time_out = r.time_out, .blocking = true}, find_place()));
  const prepared_layer p(r);
  layer_validation v;
  run_in_process(p.predicted.setting.cut.ranks(), r.time_out, [&](transport& t) {
    auto own = run_rank(p, t);
    if (t.rank() == 0) v = std::move(own);
  });
  return v;
}

}  // namespace attnsim::validate
