// node: {links: pcie, bandwidth: 25 GB/s, latency: 1 us, devices_per_switch: 2,
//        uplink_bandwidth: 25 GB/s, sockets: 2, socket_bandwidth: 40 GB/s, socket_latency: 1 us,
//        peer_access: all | switch | none, host_bandwidth: 100 GB/s}
// Devices joined by a PCIe tree alone (pcie_tree.hpp).
#include "model/cluster/nodes/pcie_tree.hpp"

namespace attnsim {
namespace {

class pcie : public regular_node_kind {
 public:
  pcie(const config_node& node, const node_shape& shape)
      : regular_node_kind(shape), tree_(node, shape) {}

  void build(network& net, const node_vertices& at) const override { tree_.build(net, at); }
  void between(int from, int to, std::vector<link_id>& path) const override {
    tree_.between(from, to, path);
  }
  void to_nic(int device, std::vector<link_id>& path) const override { tree_.to_nic(device, path); }
  void from_nic(int device, std::vector<link_id>& path) const override {
    tree_.from_nic(device, path);
  }

 private:
  pcie_tree tree_;
};

}  // namespace

std::unique_ptr<node_kind> make_pcie(const config_node& node, const node_shape& shape) {
  node.allow_only({"links", "bandwidth", "latency", "devices_per_switch", "uplink_bandwidth",
                   "sockets", "socket_bandwidth", "socket_latency", "peer_access",
                   "host_bandwidth"});
  return std::make_unique<pcie>(node, shape);
}

}  // namespace attnsim
