// A cluster: devices of one profile in nodes, and the network that joins them. Read from YAML:
//
//   name: nd-h100-v5
//   source: where the numbers are from  # optional
//   device: h100-sxm5                   # a shipped profile, a file, or the profile itself as a map
//   host: pytorch                       # optional: the same of a host (model/cluster/host.hpp); else launches take no time
//   nodes: 8
//   devices_per_node: 8
//   node:   {links: nvswitch, bandwidth: 450 GB/s, latency: 0.5 us}
//   nics:   {per_node: 8, bandwidth: 400 Gb/s, latency: 0.6 us, attach: one-per-device}
//   fabric: {kind: rail-optimized, nodes_per_leaf: 32, latency: 0.3 us}
//   slow_devices: {3: 0.5}              # optional: device number -> share of its speed
//   slow_links: {node0.nic1->leaf1: 0.5}
//   assumed: {device: why}              # optional: keys whose values are a guess, as importers write
//
// Bandwidths are those of one direction and latencies those of one link. Optional: a latency
// (zero), `node` with one device a node, `nics` and `fabric` with one node. What the keys of each
// kind mean stands at the head of its file:
//   node    nvswitch, full-mesh, pcie, nvlink-pairs, graph, none                    model/nodes
//   nics    attach: one-per-device, or shared: device d has NIC d x per_node / devices_per_node
//   fabric  star, fat-tree, rail-optimized, dragonfly, torus, multi-plane, graph,
//           none                                                                    model/fabrics
// Instead of nodes ... fabric, a file may give the network link by link: `graph`,
// model/cluster/explicit_graph.hpp.
//
// Unknown keys are refused. A shipped cluster is a file of topologies/clusters
// (model/topology_files.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/cluster/device.hpp"
#include "model/cluster/host.hpp"
#include "model/cluster/network.hpp"
#include "model/config.hpp"

namespace attnsim {

struct cluster {
  std::string name;
  device_profile device;
  host_profile host;
  int nodes = 0;             ///< 0 in an explicit graph without node numbers
  int devices_per_node = 0;  ///< 0 in an explicit graph
  attnsim::network network;
  std::vector<double> device_speed;  ///< 1, or less for a straggler
  std::vector<std::string>
      assumed;  ///< "device: why": what the file guessed and no override replaced

  int devices() const { return network.devices(); }
  double slowest_device() const {
    return *std::min_element(device_speed.begin(), device_speed.end());
  }
  double fastest_device() const {
    return *std::max_element(device_speed.begin(), device_speed.end());
  }
};

/// What a question changes of a cluster file; `set` by key.path.
struct cluster_overrides {
  std::string device;
  std::string host;
  std::int64_t nodes = 0;  ///< 0: as in the file
  std::vector<std::pair<std::string, std::string>> set;
};

/// What a cluster file may hold, at its top.
std::vector<std::string> cluster_keys();

/// A shipped name or a file. Throws input_error: unknown name (lists the shipped ones), unreadable
/// file, unknown key, bad value, unknown device or host, sizes that do not fit together (not enough ports),
/// devices that cannot reach each other (names a pair).
cluster read_cluster(const std::string& name_or_file, const cluster_overrides& = {});

/// The same from YAML that is read already. The overrides are written into it.
cluster read_cluster(config_node root, const cluster_overrides& = {});

/// The profile of a device: a shipped name or a file.
device_profile read_device_file(const std::string& name_or_file);

/// The names of the shipped clusters, devices or hosts, sorted.
std::vector<std::string> shipped_clusters();
std::vector<std::string> shipped_devices();
std::vector<std::string> shipped_hosts();

}  // namespace attnsim
