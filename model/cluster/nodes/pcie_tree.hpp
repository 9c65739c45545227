// A PCIe tree: devices and NICs hang on switches, switches on sockets, and every two sockets are
// joined. Switches fill with devices in order and spread over the sockets in equal runs; a NIC
// hangs on the switch of its first device.
#pragma once

#include "model/cluster/nodes/node_kind.hpp"

namespace attnsim {

/// The keys that a PCIe tree takes.
inline constexpr std::string_view pcie_tree_keys[]{
    "bandwidth",        "latency",        "devices_per_switch", "uplink_bandwidth", "sockets",
    "socket_bandwidth", "socket_latency", "peer_access",        "host_bandwidth"};

enum class peer_access { all, same_switch, none };

class pcie_tree {
 public:
  /// Reads from `node`, whose keys the caller has checked:
  ///   bandwidth, latency                of every link of a device, each direction
  ///   devices_per_switch
  ///   uplink_bandwidth                  of a switch to its socket (default: bandwidth)
  ///   sockets                           (default: 1)
  ///   socket_bandwidth, socket_latency  between two sockets; needed with more than one
  ///   peer_access                       which devices reach each other's memory: all (the default), those of one
  ///                                     switch, or none; other messages go through the memory of the sender's socket
  ///   host_bandwidth                    of a socket's memory, in and out each (default: that of all devices)
  pcie_tree(const config_node& node, const node_shape&);

  void build(network&, const node_vertices&) const;
  int links() const;

  /// Append links, numbered from the tree's first.
  void between(int from, int to, std::vector<link_id>& path) const;
  void to_nic(int device, std::vector<link_id>& path) const;
  void from_nic(int device, std::vector<link_id>& path) const;

 private:
  int leaf_of_nic(int nic) const { return shape_.devices + nic; }
  int leaves() const { return shape_.devices + shape_.nics.per_node; }
  int switch_of(int leaf) const;
  int socket_of(int pcie_switch) const { return pcie_switch * sockets_ / switches_; }
  bool through_host(int from, int to) const;
  link_id into_memory(int socket) const;
  void climb(int from_leaf, int to_leaf, bool through_host, std::vector<link_id>& path) const;

  node_shape shape_;
  int devices_per_switch_;
  int switches_;
  int sockets_;
  peer_access peers_;
  bandwidth rate_, uplink_rate_, socket_rate_, host_rate_;
  seconds latency_, socket_latency_;
};

}  // namespace attnsim
