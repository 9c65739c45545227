// node: {links: full-mesh, bandwidth: 448 GB/s, latency: 1 us}
// A direct link between every two devices; `bandwidth` is all of one device's, each direction,
// shared equally by its peers.
#include "model/cluster/nodes/direct_nics.hpp"

namespace attnsim {
namespace {

class full_mesh : public regular_node_kind {
 public:
  full_mesh(const config_node& node, const node_shape& shape)
      : regular_node_kind(shape),
        devices_(shape.devices),
        nics_(shape, shape.devices * (shape.devices - 1)) {
    node.allow_only({"links", "bandwidth", "latency"});
    rate_ = node.get<bandwidth>("bandwidth");
    latency_ = node.get<seconds>("latency", {});
  }

  void build(network& net, const node_vertices& at) const override {
    for (std::size_t a = 0; a < at.devices.size(); ++a) {
      for (std::size_t b = a + 1; b < at.devices.size(); ++b) {
        net.add_duplex(at.devices[a], at.devices[b], rate_ / (devices_ - 1), latency_,
                       link_kind::nvlink);
      }
    }
    nics_.build(net, at);
  }

  void between(int from, int to, std::vector<link_id>& path) const override {
    path.push_back(from < to ? 2 * pair_number(from, to, devices_)
                             : 2 * pair_number(to, from, devices_) + 1);
  }
  void to_nic(int device, std::vector<link_id>& path) const override {
    path.push_back(nics_.to_nic(device));
  }
  void from_nic(int device, std::vector<link_id>& path) const override {
    path.push_back(nics_.from_nic(device));
  }
  bool nvlink_joins_all() const override { return true; }

 private:
  int devices_;
  direct_nics nics_;
  bandwidth rate_;
  seconds latency_;
};

}  // namespace

std::unique_ptr<node_kind> make_full_mesh(const config_node& node, const node_shape& shape) {
  return std::make_unique<full_mesh>(node, shape);
}

}  // namespace attnsim
