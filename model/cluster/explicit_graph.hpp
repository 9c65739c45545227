// A network given link by link:
//
//   vertices: [{name: a, kind: device, node: 0}, {name: s, kind: switch}]
//   links:    [{from: a, to: s, bandwidth: 50 GB/s, latency: 1 us, kind: network, duplex: true}]
//
// kind of a vertex: device, nic or switch; `node` is optional. kind of a link: nvlink, pcie or
// network (the default). Routes are shortest by latency, then by hops; the hash of the pair chooses
// among equal ones. Path lengths from an end are worked out at its first message and kept, 8 bytes
// a vertex. The inside of a node (model/cluster/nodes/node_graph.cpp) and a fabric
// (model/cluster/fabrics/fabric_graph.cpp) may be given in the same way.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/cluster/network.hpp"
#include "model/config.hpp"

namespace attnsim {

/// Throws input_error, also for devices that cannot reach each other: names a pair.
network build_explicit_graph(const config_node& graph);

using vertex_names = std::unordered_map<std::string, vertex_id>;

/// Adds the vertices and links of `graph`, whose links may also name the vertices in `known`.
void read_graph(const config_node& graph, network&, vertex_names known = {});

/// Shortest paths between the ends, by their places in the list.
class graph_router : public router {
 public:
  /// Latency in picoseconds and hops as one number that orders by latency first.
  virtual std::int64_t distance(int from, int to) const = 0;
};

/// Over the links from `first_link` on. Throws input_error about `graph` for ends that cannot reach
/// each other.
std::unique_ptr<graph_router> make_shortest_path_router(const network&, std::vector<vertex_id> ends,
                                                        link_id first_link,
                                                        const config_node& graph);

}  // namespace attnsim
