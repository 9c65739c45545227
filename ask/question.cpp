#include "ask/question.hpp"

#include <fmt/format.h>

#include "model/attention/model_shapes.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim::ask {
namespace {

/// The transposed order where it makes one kernel call of many.
kv_order usual_order(const strategy& s, const algorithm& of) {
  const bool square = s.rows == 0 || s.rows == s.cols;
  const bool suits = of.transposes && s.tokens == token_layout::striped && square;
  return suits ? kv_order::transposed : kv_order::direct;
}

}  // namespace

cluster cluster_of(const question& q) {
  return read_cluster(q.cluster, q.overrides);
}

int ranks_of(const question& q, const cluster& c) {
  const auto ranks = q.ranks.value_or(c.devices());
  if (ranks > c.devices()) {
    throw infeasible(asked("ranks"), std::to_string(ranks),
                     fmt::format("{} has {} devices; feasible: 1 to {}, or more with more nodes",
                                 c.name, c.devices(), c.devices()));
  }
  return static_cast<int>(ranks);
}

attention problem_of(const question& q, std::int64_t unit) {
  if (!q.sequence) throw input_error(asked("seq"), "is required");
  attention a{.heads = 32};
  if (!q.model.empty()) use_model_shape(a, q.model);
  if (q.heads) a.heads = *q.heads;
  if (q.model.empty()) a.kv_heads = a.heads;
  if (q.kv_heads) a.kv_heads = *q.kv_heads;
  if (q.head_dim) a.head_dim = *q.head_dim;
  a.batch = q.batch;
  a.sequence = *q.sequence;
  a.mask = q.mask;
  a.window = q.window;
  a.documents = q.documents;
  a.dtype = q.dtype;
  if (q.pad) {
    a.padding = (unit - a.sequence % unit) % unit;
    a.sequence += a.padding;
  }
  check(a);
  return a;
}

strategy strategy_of(const question& q, mask_kind mask) {
  const auto& described = find_algorithm(q.schedule);
  strategy s;
  s.schedule = q.schedule;
  s.kernel = q.kernel;
  if (q.grid) std::tie(s.rows, s.cols) = *q.grid;
  s.ulysses = static_cast<int>(q.ulysses.value_or(0));
  s.tensor_parallel = static_cast<int>(q.tensor_parallel);
  const auto usual = mask == mask_kind::full ? token_layout::contiguous : described.tokens;
  s.tokens = q.tokens.value_or(usual);
  s.placement = q.placement.value_or(described.placement);
  s.reduction = q.reduction.value_or(s.reduction);
  s.merges = q.merges.value_or(s.merges);
  s.launch = q.launch.value_or(s.launch);
  s.partials = q.partials.value_or(s.partials);
  s.gradients = q.gradients.value_or(s.gradients);
  s.order = q.order.value_or(usual_order(s, described));
  return s;
}

plan_request plan_of(const question& q, const attention& problem, int ranks,
                     std::vector<std::string> schedules) {
  plan_request request{.problem = problem, .fixed = strategy_of(q, problem.mask)};
  request.fix_tokens = q.tokens.has_value();
  request.fix_placement = q.placement.has_value();
  request.fix_grid = q.grid.has_value();
  request.ranks = ranks;
  request.pass = q.pass;
  request.schedules = std::move(schedules);
  return request;
}

plan_request plan_of(const question& q, int ranks, std::vector<std::string> schedules) {
  const auto unit = q.tokens ? layout_unit(*q.tokens, ranks) : std::int64_t{2} * ranks;
  return plan_of(q, problem_of(q, unit), ranks, std::move(schedules));
}

prediction predict(const question& q, const cluster& c) {
  const int ranks = ranks_of(q, c);
  const auto chosen = strategy_of(q, q.mask);
  const auto problem = problem_of(q, layout_unit(chosen.tokens, ranks));
  return attnsim::predict(c, problem, chosen, ranks, q.pass, q.by);
}

}  // namespace attnsim::ask
