// Weighted max-min fair rates of a set of flows, by progressive filling: the reference that the
// incremental solver of flow_network is tested against. Simple and O(rounds * total path length).
//
// All rates grow together from zero. When a link fills up, the flows that cross it stop there: the
// link is their bottleneck. The rest grow on until every flow has stopped, at a link or at its own
// limit. The result is the only allocation in which every flow without a binding limit has a
// bottleneck: a link that is full and on which no flow is faster (Bertsekas and Gallager, Data
// Networks, 2nd edition, section 6.5.2).
#pragma once

#include <span>
#include <vector>

#include "sim/link_use.hpp"

namespace attnsim {

struct flow_demand {
  std::vector<link_use> path;
  double rate_limit = unlimited;
};

/// The rate of every flow in bytes/s; infinity for a flow with neither path nor limit. Levels
/// closer than 1e-12 relative count as one. Throws std::invalid_argument for a bad capacity, path
/// or limit (see link_use.hpp).
std::vector<double> max_min_rates(std::span<const double> capacities,
                                  std::span<const flow_demand> flows);

}  // namespace attnsim
