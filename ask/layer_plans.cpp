#include "ask/layer_plans.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "model/error.hpp"

namespace attnsim::ask {
namespace {

using best_by_layout = std::map<token_layout, prediction>;

/// Layouts that the sequence does not fit, or in which nothing runs, are left out.
best_by_layout best_of_kind(question q, const cluster& c, layer_kind kind,
                            const std::vector<std::string>& schedules,
                            const plan_progress& progress) {
  q.layer = kind;
  std::vector<token_layout> layouts{token_layout::zigzag, token_layout::striped,
                                    token_layout::contiguous};
  if (q.tokens) layouts = {*q.tokens};
  best_by_layout best;
  std::optional<infeasible> refused;
  for (const auto tokens : layouts) {
    q.tokens = tokens;
    try {
      auto found = plan(c, plan_of(q, ranks_of(q, c), schedules), progress);
      best.emplace(tokens, std::move(found.candidates.front()));
    } catch (const infeasible& e) {
      if (!refused) refused = e;
    }
  }
  if (best.empty()) throw *refused;
  return best;
}

const prediction& fastest(const best_by_layout& all) {
  return std::min_element(
             all.begin(), all.end(),
             [](const auto& x, const auto& y) { return x.second.time < y.second.time; })
      ->second;
}

}  // namespace

seconds layer_plans::time() const {
  seconds all;
  for (const auto& one : kinds) all += static_cast<double>(one.layers) * one.best.time;
  return all;
}

seconds layer_plans::unbound_time() const {
  seconds all;
  for (const auto& one : kinds) all += static_cast<double>(one.layers) * one.unbound.time;
  return all;
}

layer_plans plan_each_kind(const question& q, const cluster& c,
                           const std::vector<std::string>& schedules,
                           const plan_progress& progress) {
  const auto counts = q.model.empty() ? layer_counts{} : layers_of(q.model);
  if (counts.full == 0 || counts.window == 0)
    throw input_error(asked("model"), q.model, "expected one with layers of two kinds");
  const auto full = best_of_kind(q, c, layer_kind::full, schedules, progress);
  const auto window = best_of_kind(q, c, layer_kind::window, schedules, progress);
  std::optional<layer_plans> best;
  for (const auto& [tokens, of_full] : full) {
    const auto same = window.find(tokens);
    if (same == window.end()) continue;
    layer_plans one{{{layer_kind::full, counts.full, of_full, fastest(full)},
                     {layer_kind::window, counts.window, same->second, fastest(window)}}};
    if (!best || one.time() < best->time()) best = std::move(one);
  }
  if (!best) throw infeasible(asked("tokens"), "no layout suits both kinds of layers");
  return *best;
}

}  // namespace attnsim::ask
