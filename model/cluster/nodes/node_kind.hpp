// The inside of a node: its devices, its NICs and the links that join them. All nodes of a cluster
// are alike, so a kind describes one; it numbers the links from the node's first. A kind is one
// file of this folder and one line of the table in node_kind.cpp.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/cluster/network.hpp"
#include "model/config.hpp"

namespace attnsim {

/// `nics:` of a cluster file. The link between a device (or its PCIe switch) and a NIC has
/// pcie_bandwidth; by default the NIC's, which never limits, and no latency.
struct nic_settings {
  int per_node = 0;
  bandwidth rate;   ///< each direction
  seconds latency;  ///< of the link between a NIC and its switch: a message crosses two
  bandwidth pcie_bandwidth;
};

struct node_shape {
  int devices = 1;
  nic_settings nics;

  /// The NIC of a device; neighbours share one where there are fewer NICs than devices.
  int nic_of(int device) const { return device * nics.per_node / devices; }
  int first_device_of(int nic) const { return (nic * devices + nics.per_node - 1) / nics.per_node; }
};

struct node_vertices {
  int node = 0;
  std::span<const vertex_id> devices;
  std::span<const vertex_id> nics;
};

class node_kind {
 public:
  virtual ~node_kind() = default;

  /// The NIC that serves a device.
  virtual int nic_of(int device) const = 0;

  /// Adds the switches and links of one node, always in the same order.
  virtual void build(network&, const node_vertices&) const = 0;

  /// Append links, numbered from the node's first: between two different devices, from a device to
  /// its NIC, from its NIC to a device.
  virtual void between(int from, int to, std::vector<link_id>& path) const = 0;
  virtual void to_nic(int device, std::vector<link_id>& path) const = 0;
  virtual void from_nic(int device, std::vector<link_id>& path) const = 0;

  /// Whether NVLink leads from every device to every other.
  virtual bool nvlink_joins_all() const { return false; }
};

/// Kinds in which neighbours share a NIC where there are fewer NICs than devices.
class regular_node_kind : public node_kind {
 public:
  explicit regular_node_kind(const node_shape& shape) : shape_(shape) {}
  int nic_of(int device) const override { return shape_.nic_of(device); }

 protected:
  node_shape shape_;
};

/// Reads `node: {links: KIND, ...}`.
std::unique_ptr<node_kind> read_node(const config_node& node, const node_shape&);

/// Number of the pair a < b among the pairs of 0 .. n-1 in lexicographic order.
constexpr link_id pair_number(int a, int b, int n) {
  return static_cast<link_id>(a * (2 * n - a - 1) / 2 + (b - a - 1));
}

std::unique_ptr<node_kind> make_nvswitch(const config_node&, const node_shape&);
std::unique_ptr<node_kind> make_full_mesh(const config_node&, const node_shape&);
std::unique_ptr<node_kind> make_pcie(const config_node&, const node_shape&);
std::unique_ptr<node_kind> make_nvlink_pairs(const config_node&, const node_shape&);
std::unique_ptr<node_kind> make_node_graph(const config_node&, const node_shape&);
std::unique_ptr<node_kind> make_single_device(const config_node&, const node_shape&);

}  // namespace attnsim
