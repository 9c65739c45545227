#include "ask/question.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ask/predicted_run.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim::ask {
namespace {

/// Balanced under a causal mask; documents as frameworks lay them out.
token_layout usual_tokens(const algorithm& of, const attention& a) {
  if (of.whole_queries) return of.tokens;
  if (a.mask == mask_kind::full || of.tokens == token_layout::contiguous)
    return token_layout::contiguous;
  return a.documents.empty() ? of.tokens : token_layout::zigzag;
}

/// The sequence, or each of its documents as frameworks do, grows to the next multiple of `unit`. Padding within documents is
/// computed like other tokens.
void pad(attention& a, std::int64_t unit) {
  const auto rounded = [&](std::int64_t tokens) { return (tokens + unit - 1) / unit * unit; };
  const auto before = a.sequence;
  if (a.documents.empty()) {
    a.sequence = rounded(a.sequence);
    a.padding = a.sequence - before;
    return;
  }
  check(a);
  a.sequence = 0;
  for (auto& length : a.documents) a.sequence += length = rounded(length);
  if (a.sequence == before) return;
  a.notes.push_back(fmt::format(
      "documents padded to multiples of {}: {} of {} tokens are padding and computed like others",
      unit, a.sequence - before, a.sequence));
}

/// One document that is the whole sequence; a window in which all of the longest document has room; values as wide as keys; a
/// type on the wire that is theirs. So equal questions have equal answers.
void drop_what_changes_nothing(attention& a) {
  if (a.v_head_dim == a.head_dim) a.v_head_dim = 0;
  const auto is_longest = [&](std::int64_t prefix) { return prefix == a.prefix; };
  if (std::all_of(a.prefixes.begin(), a.prefixes.end(), is_longest) &&
      std::ssize(a.prefixes) == a.batch)
    a.prefixes.clear();
  if (a.wire_dtype == a.dtype) a.wire_dtype.reset();
  if (a.documents == std::vector{a.sequence}) a.documents.clear();
  const auto longest = a.documents.empty()
                           ? a.tokens(token_side::keys)
                           : *std::max_element(a.documents.begin(), a.documents.end());
  if (a.mask == mask_kind::causal && a.window >= longest) a.window = a.kept_first = 0;
}

/// The transposed order where it makes one kernel call of many.
kv_order usual_order(const strategy& s, const algorithm& of) {
  const bool square = s.rows > 0 && s.rows == s.cols;
  const bool suits = of.transposes && s.tokens == token_layout::striped && square;
  return suits ? kv_order::transposed : kv_order::direct;
}

}  // namespace

cluster cluster_of(const question& q) {
  auto overrides = q.overrides;
  if (overrides.host.empty() && !q.framework.empty())
    overrides.host = read_framework_file(q.framework).host;
  return read_cluster(q.cluster, overrides);
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

namespace {

/// A batch and a longest prefix that are given must be theirs.
void use_requests(attention& a, const std::vector<std::int64_t>& prefixes) {
  const auto longest = *std::max_element(prefixes.begin(), prefixes.end());
  if (a.batch == 1) a.batch = std::ssize(prefixes);
  if (a.prefix == 0) a.prefix = longest;
  a.prefixes = prefixes;
}

}  // namespace

attention layer_of(const question& q) {
  attention a{.heads = 32};
  if (!q.model.empty()) {
    q.latent ? use_absorbed(a, q.model) : use_model(a, q.model, q.layer);
  } else if (q.layer == layer_kind::window) {
    throw input_error(asked("layer"), "window", "expected a model that has such layers");
  }
  if (q.head_dim || q.v_head_dim) a.latent_rank = a.rotary = 0;
  if (q.heads) a.heads = *q.heads;
  if (q.model.empty()) a.kv_heads = q.latent ? 1 : a.heads;
  if (q.kv_heads) a.kv_heads = *q.kv_heads;
  if (q.head_dim) a.head_dim = *q.head_dim, a.v_head_dim = 0;
  if (q.v_head_dim) a.v_head_dim = *q.v_head_dim;
  a.latent = q.latent;
  a.batch = q.batch;
  a.sequence = q.sequence.value_or(0);
  a.mask = q.mask.value_or(q.kv_sequence > 0 ? mask_kind::full : a.mask);
  a.window = q.window.value_or(a.mask == mask_kind::full ? 0 : a.window);
  a.kept_first = q.kept_first;
  a.sinks = q.sinks.value_or(a.sinks);
  a.documents = q.documents;
  a.prefix = q.prefix;
  if (!q.prefixes.empty()) use_requests(a, q.prefixes);
  a.kv_sequence = q.kv_sequence;
  a.dtype = q.dtype;
  a.wire_dtype = q.wire_dtype;
  return as_framework_has_it(std::move(a), q);
}

attention as_framework_has_it(attention a, const question& q) {
  if (q.framework.empty() || a.latent || a.kv_heads == a.heads) return a;
  if (!read_framework_file(q.framework).repeats_keys) return a;
  a.notes.push_back(
      fmt::format("{} repeats keys and values for every query head: {} in place of {}", q.framework,
                  a.heads, a.kv_heads));
  a.kv_heads = a.heads;
  return a;
}

namespace {

std::string note_of_requests(const attention& a) {
  double tokens = 0;
  for (const auto prefix : a.prefixes) tokens += static_cast<double>(prefix + a.sequence);
  const auto counted = static_cast<double>(a.batch * a.tokens(token_side::keys));
  return fmt::format(
      "requests of several lengths: memory is counted as if all were as long as the longest; a "
      "paged cache has {} of these tokens",
      percent(tokens / counted));
}

}  // namespace

attention problem_of(const question& q, std::int64_t unit) {
  if (!q.sequence) throw input_error(asked("seq"), "is required");
  auto a = layer_of(q);
  drop_what_changes_nothing(a);
  if (!a.prefixes.empty()) a.notes.push_back(note_of_requests(a));
  if (q.pad) pad(a, unit);
  check(a);
  return a;
}

namespace {

using algorithm_list = std::vector<const algorithm*>;

void require_reader(const algorithm_list& asked_about, bool algorithm::*reads, const char* field,
                    std::string_view value) {
  if (std::any_of(asked_about.begin(), asked_about.end(), [&](auto* one) { return one->*reads; }))
    return;
  std::string readers;
  for (const auto& one : algorithms()) {
    if (one.*reads) readers += (readers.empty() ? "" : ", ") + one.name;
  }
  throw input_error(asked(field), std::string(value),
                    fmt::format("expected with a schedule that reads it: {}", readers));
}

/// Nothing that is asked for is left out in silence.
void require_readers(const question& q, const algorithm_list& asked_about) {
  if (q.order) require_reader(asked_about, &algorithm::transposes, "kv-order", name_of(*q.order));
  if (q.reduction)
    require_reader(asked_about, &algorithm::reduces, "reduction", name_of(*q.reduction));
  if (q.merges) require_reader(asked_about, &algorithm::merges, "merges", name_of(*q.merges));
  if (q.partials)
    require_reader(asked_about, &algorithm::sends_partials, "partials", name_of(*q.partials));
  if (q.gradients)
    require_reader(asked_about, &algorithm::sends_gradients, "gradients", name_of(*q.gradients));
  if (!q.levels.empty())
    require_reader(asked_about, &algorithm::found_by_search, "levels", written(q.levels));
}

strategy followed(const framework_profile& f) {
  strategy s;
  s.merges = f.merges;
  s.partials = f.partials;
  s.gradients = f.gradients;
  s.launch = f.launch;
  s.copies = f.copies;
  s.waits = f.waits;
  return s;
}

strategy wanted_strategy(const question& q, const attention& a) {
  const auto& described = find_algorithm(q.schedule);
  auto s = q.framework.empty() ? strategy() : followed(read_framework_file(q.framework));
  s.schedule = q.schedule;
  s.kernel = q.kernel;
  if (q.grid) std::tie(s.rows, s.cols) = *q.grid;
  s.ulysses = static_cast<int>(q.ulysses.value_or(0));
  s.tensor_parallel = static_cast<int>(q.tensor_parallel.value_or(1));
  s.tokens = q.tokens.value_or(usual_tokens(described, a));
  s.placement = q.placement.value_or(described.placement);
  s.reduction = q.reduction.value_or(s.reduction);
  s.merges = q.merges.value_or(s.merges);
  s.launch = q.launch.value_or(s.launch);
  s.partials = q.partials.value_or(s.partials);
  s.gradients = q.gradients.value_or(s.gradients);
  s.keys_sent = q.keys_sent.value_or(s.keys_sent);
  s.order = q.order.value_or(usual_order(s, described));
  s.levels = q.levels;
  s.parts = static_cast<int>(q.parts);
  s.shares.assign(q.shares.begin(), q.shares.end());
  return s;
}

}  // namespace

strategy strategy_of(const question& q, const attention& a) {
  require_readers(q, {&find_algorithm(q.schedule)});
  return wanted_strategy(q, a);
}

plan_request plan_of(const question& q, const attention& problem, int ranks,
                     std::vector<std::string> schedules) {
  algorithm_list planned;
  for (const auto& name : schedules) planned.push_back(&find_algorithm(name));
  for (const auto& one : algorithms()) {
    if (schedules.empty()) planned.push_back(&one);
  }
  require_readers(q, planned);
  plan_request request{.problem = problem, .fixed = wanted_strategy(q, problem)};
  request.fix_tokens = q.tokens.has_value();
  request.fix_placement = q.placement.has_value();
  request.fix_grid = q.grid.has_value();
  request.fix_tensor_parallel = q.tensor_parallel.has_value();
  request.fix_keys_sent = q.keys_sent.has_value();
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
  return predicted_run(q, c).prediction();
}

prediction predict(const question& q, shared_work& work) {
  return predicted_run(q, work).prediction();
}

}  // namespace attnsim::ask
