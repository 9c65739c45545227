// The clusters of scenario.hpp.
#pragma once

#include <string>

#include "model/cluster/cluster.hpp"

namespace attnsim {

/// `kind`: star, fat-tree or dragonfly. `latency`: of one link, in microseconds.
cluster scenario_cluster(const std::string& kind, int hosts, double latency);

}  // namespace attnsim
