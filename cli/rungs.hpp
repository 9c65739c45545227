// Predicted and measured points as `compare` and `calibrate` show them (calibrate/ladder.hpp).
#pragma once

#include <vector>

#include "calibrate/ladder.hpp"
#include "calibrate/measurements.hpp"
#include "model/cluster/cluster.hpp"
#include "report/page.hpp"

namespace attnsim::cli {

/// A measured point, its prediction, and the interval of the cluster's profile.
ladder_point compared(const measurement&, const cluster&);

/// A row a rung: errors, share of points in their interval, the worst.
report::table summary_of(const std::vector<ladder_point>&);

/// The summary, then each rung's points with their intervals.
std::vector<report::section> sections_of(const std::vector<ladder_point>&);

}  // namespace attnsim::cli
