// node: {links: none}
// One device and its NIC.
#include "model/cluster/nodes/direct_nics.hpp"

namespace attnsim {
namespace {

class single_device : public regular_node_kind {
 public:
  explicit single_device(const node_shape& shape) : regular_node_kind(shape), nics_(shape, 0) {}

  void build(network& net, const node_vertices& at) const override { nics_.build(net, at); }
  void between(int, int, std::vector<link_id>&) const override {}
  void to_nic(int device, std::vector<link_id>& path) const override {
    path.push_back(nics_.to_nic(device));
  }
  void from_nic(int device, std::vector<link_id>& path) const override {
    path.push_back(nics_.from_nic(device));
  }
  bool nvlink_joins_all() const override { return true; }

 private:
  direct_nics nics_;
};

}  // namespace

std::unique_ptr<node_kind> make_single_device(const config_node& node, const node_shape& shape) {
  node.allow_only({"links"});
  if (shape.devices != 1) node.fail("links", "expected links that join the devices of a node");
  return std::make_unique<single_device>(shape);
}

}  // namespace attnsim
