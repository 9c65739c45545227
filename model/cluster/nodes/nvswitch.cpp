// node: {links: nvswitch, bandwidth: 450 GB/s, latency: 1 us}
// Every device has one link of that bandwidth, each direction, to a switch that never limits. A
// message crosses two links.
#include "model/cluster/nodes/direct_nics.hpp"

namespace attnsim {
namespace {

class nvswitch : public regular_node_kind {
 public:
  nvswitch(const config_node& node, const node_shape& shape)
      : regular_node_kind(shape), nics_(shape, 2 * shape.devices) {
    node.allow_only({"links", "bandwidth", "latency"});
    rate_ = node.get<bandwidth>("bandwidth");
    latency_ = node.get<seconds>("latency", {});
  }

  void build(network& net, const node_vertices& at) const override {
    const auto hub = net.add_vertex({.node = at.node, .tier = "nvswitch"});
    for (const auto device : at.devices) {
      net.add_duplex(device, hub, rate_, latency_, link_kind::nvlink);
    }
    nics_.build(net, at);
  }

  void between(int from, int to, std::vector<link_id>& path) const override {
    path.push_back(static_cast<link_id>(2 * from));
    path.push_back(static_cast<link_id>(2 * to + 1));
  }
  void to_nic(int device, std::vector<link_id>& path) const override {
    path.push_back(nics_.to_nic(device));
  }
  void from_nic(int device, std::vector<link_id>& path) const override {
    path.push_back(nics_.from_nic(device));
  }
  bool nvlink_joins_all() const override { return true; }

 private:
  direct_nics nics_;
  bandwidth rate_;
  seconds latency_;
};

}  // namespace

std::unique_ptr<node_kind> make_nvswitch(const config_node& node, const node_shape& shape) {
  return std::make_unique<nvswitch>(node, shape);
}

}  // namespace attnsim
