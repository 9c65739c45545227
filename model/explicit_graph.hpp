// A network given link by link:
//
//   vertices: [{name: a, kind: device, node: 0}, {name: s, kind: switch}]
//   links:    [{from: a, to: s, bandwidth: 50 GB/s, latency: 1 us, kind: network, duplex: true}]
//
// kind of a vertex: device, nic or switch; `node` is optional. kind of a link: nvlink, pcie or
// network (the default). Routes are shortest by latency, then by hops; the hash of the pair chooses
// among equal ones. Path lengths from a device are worked out at its first message and kept, 8
// bytes a vertex.
#pragma once

#include "model/config.hpp"
#include "model/network.hpp"

namespace attnsim {

/// Throws input_error, also for devices that cannot reach each other: names a pair.
network build_explicit_graph(const config_node& graph);

}  // namespace attnsim
