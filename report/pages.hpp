// Pages of predictions and plans.
#pragma once

#include "ask/planner.hpp"
#include "ask/predicted_run.hpp"
#include "model/cluster/cluster.hpp"
#include "report/page.hpp"

namespace attnsim::report {

/// One strategy.
page page_of(const cluster&, ask::predicted_run&);

/// The candidates that are known while a plan is worked out, best first.
page page_so_far(const cluster&, const std::vector<prediction>& ranked);

/// Candidates with the best in detail.
page page_of(const cluster&, const plan_result&);

}  // namespace attnsim::report
