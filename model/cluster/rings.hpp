// The rings that NCCL lays through a group of devices for its ring collectives. Each channel is a ring over all members
// and carries an equal share of the data.
//   one node, switched        one ring: each device's port is used in full by it
//   one node, direct links    one ring a stride coprime with n, so that every link carries something
//   several nodes             one channel per member of a node, node by node; channel k crosses between nodes at the
//                             devices k and k - 1 alternately, so each NIC (and rail) carries one channel's share
#pragma once

#include <vector>

#include "model/cluster/network.hpp"

namespace attnsim {

/// The members node by node, nodes in the order of their first member.
std::vector<std::vector<int>> by_node(const network&, const std::vector<int>& members);

/// Orders of the members, one a channel. Members are device numbers; groups of one have no ring.
std::vector<std::vector<int>> ring_channels(const network&, const std::vector<int>& members);

}  // namespace attnsim
