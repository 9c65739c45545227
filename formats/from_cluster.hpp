// A cluster of the model as parts and cables, for drawing and for other programs.
#pragma once

#include "formats/topology.hpp"
#include "model/cluster/cluster.hpp"

namespace attnsim::formats {

/// Parts in the order of the network's vertices; two links back and forth of one rate become one
/// cable.
topology from_cluster(const cluster&);

}  // namespace attnsim::formats
