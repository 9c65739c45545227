// Builds the network of equal nodes joined by a fabric. A route to another node is: inside the
// first node to a NIC, over the fabric to the NIC of the destination, inside the last node to the
// device.
#pragma once

#include "model/cluster/network.hpp"
#include "model/config.hpp"

namespace attnsim {

/// Reads `devices_per_node`, `node`, `nics` and `fabric` of a cluster file.
network build_node_network(const config_node& root, int nodes, int devices_per_node);

}  // namespace attnsim
