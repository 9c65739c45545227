// Pages of predictions and plans.
#pragma once

#include <vector>

#include "ask/predict.hpp"
#include "model/cluster/cluster.hpp"
#include "report/page.hpp"

namespace attnsim::report {

/// One strategy, simulated once more to record what happens.
page page_of(const cluster&, const prediction&);

/// Candidates, best first, with the best in detail. `result` is what --format json prints.
page page_of(const cluster&, const std::vector<prediction>& ranked, nlohmann::ordered_json result);

}  // namespace attnsim::report
