// node: {links: nvlink-pairs, bandwidth: 300 GB/s, latency: 1 us, pcie: {bandwidth: 25 GB/s, ...}}
// Devices 2i and 2i + 1 share a bridge of that bandwidth, each direction; the rest of the traffic
// takes the PCIe tree (pcie_tree.hpp). An odd last device has no bridge.
#include "model/cluster/nodes/pcie_tree.hpp"

namespace attnsim {
namespace {

class nvlink_pairs : public regular_node_kind {
 public:
  nvlink_pairs(const config_node& node, const node_shape& shape)
      : regular_node_kind(shape), tree_(node.at("pcie"), shape) {
    rate_ = node.get<bandwidth>("bandwidth");
    latency_ = node.get<seconds>("latency", {});
  }

  void build(network& net, const node_vertices& at) const override {
    tree_.build(net, at);
    for (std::size_t d = 0; d + 1 < at.devices.size(); d += 2) {
      net.add_duplex(at.devices[d], at.devices[d + 1], rate_, latency_, link_kind::nvlink);
    }
  }

  void between(int from, int to, std::vector<link_id>& path) const override {
    if (from / 2 != to / 2) return tree_.between(from, to, path);
    path.push_back(static_cast<link_id>(tree_.links() + from));  // from is even: forth, odd: back
  }
  void to_nic(int device, std::vector<link_id>& path) const override { tree_.to_nic(device, path); }
  void from_nic(int device, std::vector<link_id>& path) const override {
    tree_.from_nic(device, path);
  }

 private:
  pcie_tree tree_;
  bandwidth rate_;
  seconds latency_;
};

}  // namespace

std::unique_ptr<node_kind> make_nvlink_pairs(const config_node& node, const node_shape& shape) {
  node.allow_only({"links", "bandwidth", "latency", "pcie"});
  node.at("pcie").allow_only(pcie_tree_keys);
  return std::make_unique<nvlink_pairs>(node, shape);
}

}  // namespace attnsim
