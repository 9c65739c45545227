// What happened in a run: where its time went, on the critical rank and on the links.
#pragma once

#include <vector>

#include "ask/predicted_run.hpp"
#include "model/cluster/cluster.hpp"
#include "report/page.hpp"

namespace attnsim::report {

using ask::recorded_pass;

/// What the streams of the rank that ends last did: how long which operations took, and when they ran.
section breakdown(const std::vector<recorded_pass>&);
section critical_rank(const std::vector<recorded_pass>&);

/// How busy links were, over all passes: on the drawing, and by what they join.
section link_utilisation(const cluster&, const std::vector<recorded_pass>&);

}  // namespace attnsim::report
