// Plans for a model that has layers with a sliding window and layers that see all tokens: the best strategy for each kind, with
// one token layout in all layers, as hidden states would have to move between layers that differ.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ask/planner.hpp"
#include "ask/question.hpp"

namespace attnsim::ask {

struct layer_plan {
  layer_kind kind;
  std::int64_t layers = 0;  ///< of the model
  prediction best;          ///< with the layout that suits all layers together
  prediction unbound;       ///< with any layout
};

struct layer_plans {
  std::vector<layer_plan> kinds;  ///< full, then window

  /// Of all layers, one after the other.
  seconds time() const;
  /// The same where each kind has the layout that suits it, without what moves tokens in between.
  seconds unbound_time() const;
};

/// Schedules by name, none: all. Throws as plan() does; input_error for a model whose layers are alike; infeasible where no layout
/// suits both kinds.
layer_plans plan_each_kind(const question&, const cluster&,
                           const std::vector<std::string>& schedules,
                           const plan_progress& progress = {});

}  // namespace attnsim::ask
