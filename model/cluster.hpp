// A cluster: devices of one profile in nodes, and the network that joins them. Read from YAML:
//
//   name: nd-h100-v5
//   device: h100-sxm5              # a shipped profile, a file, or the profile itself as a map
//   nodes: 8
//   devices_per_node: 8
//   node:   {links: nvswitch, bandwidth: 450 GB/s, latency: 1 us}
//   nics:   {per_node: 8, bandwidth: 400 Gb/s, latency: 2 us, attach: one-per-device}
//   fabric: {kind: rail-optimized}
//   slow_devices: {3: 0.5}         # optional: device number -> share of its speed
//   slow_links: {node0.nic1->leaf1: 0.5}
//
// or, instead of nodes ... fabric, an explicit graph:
//
//   graph:
//     vertices: [{name: a, kind: device, node: 0}, {name: s, kind: switch}]
//     links:    [{from: a, to: s, bandwidth: 50 GB/s, latency: 1 us, kind: network, duplex: true}]
//
// Unknown keys are refused. A shipped cluster is a file of topologies/clusters, found beside the
// program's sources, in its installation or in the folder that the variable ATTNSIM_TOPOLOGIES
// names.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/config.hpp"
#include "model/device.hpp"
#include "model/network.hpp"

namespace attnsim {

struct cluster {
  std::string name;
  device_profile device;
  int nodes = 0;             ///< 0 in an explicit graph without node numbers
  int devices_per_node = 0;  ///< 0 in an explicit graph
  attnsim::network network;
  std::vector<double> device_speed;  ///< 1, or less for a straggler

  int devices() const { return network.devices(); }
};

/// What the command line changes: --nodes, --device and --set key.path=value.
struct cluster_overrides {
  std::string device;
  std::int64_t nodes = 0;  ///< 0: as in the file
  std::vector<std::pair<std::string, std::string>> set;
};

/// A shipped name or a file. Throws input_error: unknown name (lists the shipped ones), unreadable
/// file, unknown key, bad value, unknown device, devices that cannot reach each other (names a
/// pair).
cluster read_cluster(const std::string& name_or_file, const cluster_overrides& = {});
cluster read_cluster(config_node root,
                     const cluster_overrides& = {});  ///< overrides are written into `root`

/// The names of the shipped clusters or devices, sorted.
std::vector<std::string> shipped_clusters();
std::vector<std::string> shipped_devices();

}  // namespace attnsim
