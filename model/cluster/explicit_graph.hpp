// A network given link by link:
//
//   vertices: [{name: a, kind: device, node: 0}, {name: s, kind: switch}]
//   links:    [{from: a, to: s, bandwidth: 50 GB/s, latency: 1 us, kind: network, duplex: true}]
//
// kind of a vertex: device, nic or switch; `node` is optional. kind of a link: nvlink, pcie,
// host-memory or network (the default). Routes are shortest by latency, then by hops, among those of
// the first rule that has one; the hash of the pair chooses among equal ones. Between devices of one
// node, as NCCL (src/graph/paths.cc: NVL, NVB, PIX to SYS):
//   1. over NVLink and its switches
//   2. over NVLink by way of one other device
//   3. over NVLink, PCIe and host memory, through switches alone
//   4. the same through other devices, never through a NIC
//   5. any
// From a device to a NIC of its node 3 to 5, to another node 5. Path lengths from an end are worked
// out at its first message and kept, 8 bytes a vertex and rule. The inside of a node (model/cluster/nodes/node_graph.cpp) and a fabric
// (model/cluster/fabrics/fabric_graph.cpp) may be given in the same way.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/cluster/network.hpp"
#include "model/config.hpp"

namespace attnsim {

/// Throws input_error, also for devices that cannot reach each other: names a pair.
network build_explicit_graph(const config_node& graph);

using vertex_names = std::unordered_map<std::string, vertex_id>;

/// Adds the vertices and links of `graph`, whose links may also name the vertices in `known`.
void read_graph(const config_node& graph, network&, vertex_names known = {});

/// Routes between the ends, by their places in the list.
class graph_router : public router {
 public:
  /// A rule's number, then latency in picoseconds and hops as one number that orders by latency first.
  using distance_type = std::pair<int, std::int64_t>;
  virtual distance_type distance(int from, int to) const = 0;
};

/// Over the links from `first_link` on. `one_node`: all ends are of one node, else the vertices tell. Throws input_error
/// about `graph` for ends that cannot reach each other.
std::unique_ptr<graph_router> make_graph_router(const network&, std::vector<vertex_id> ends,
                                                link_id first_link, bool one_node,
                                                const config_node& graph);

}  // namespace attnsim
