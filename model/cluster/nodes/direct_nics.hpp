// NICs wired straight to their devices: no PCIe tree that traffic of several devices could share.
#pragma once

#include "model/cluster/nodes/node_kind.hpp"

namespace attnsim {

class direct_nics {
 public:
  /// `first`: number of the first of these links in the node; device d has first + 2 d and the
  /// next.
  direct_nics(const node_shape& shape, int first) : shape_(shape), first_(first) {}

  void build(network& net, const node_vertices& at) const {
    if (at.nics.empty()) return;
    for (int d = 0; d < shape_.devices; ++d) {
      const auto nic = at.nics[static_cast<std::size_t>(shape_.nic_of(d))];
      net.add_duplex(at.devices[static_cast<std::size_t>(d)], nic, shape_.nics.pcie_bandwidth, {},
                     link_kind::pcie);
    }
  }
  link_id to_nic(int device) const { return static_cast<link_id>(first_ + 2 * device); }
  link_id from_nic(int device) const { return to_nic(device) + 1; }

 private:
  node_shape shape_;
  int first_;
};

}  // namespace attnsim
