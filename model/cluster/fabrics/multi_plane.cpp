// fabric: {kind: multi-plane, planes: 4, messages: hashed, plane: {kind: fat-tree, ...}}
// Independent equal fabrics; every NIC has a port on each and divides its bandwidth among them. A
// message takes the plane that its hash picks (`hashed`), or is cut in equal parts over all planes
// (`split`): the planes then carry equal loads and are modelled as one of their summed bandwidth.
#include "model/cluster/fabrics/fabric.hpp"
#include "model/spelling.hpp"

namespace attnsim {
namespace {

constexpr int most_planes = 64;

class multi_plane : public fabric {
 public:
  explicit multi_plane(std::vector<std::unique_ptr<fabric>> planes) : planes_(std::move(planes)) {}

  void route(int from, int to, std::uint64_t flow, std::vector<link_id>& path) const override {
    planes_[flow % planes_.size()]->route(from, to, flow / planes_.size(), path);
  }
  bool leaves_on_rail() const override { return planes_.front()->leaves_on_rail(); }

 private:
  std::vector<std::unique_ptr<fabric>> planes_;
};

}  // namespace

std::unique_ptr<fabric> make_multi_plane(const config_node& config, const fabric_site& site) {
  config.allow_only({"kind", "planes", "messages", "plane"});
  const int planes = config.get_within("planes", 1, most_planes);
  const auto messages = config.get<std::string>("messages");
  const auto plane = config.at("plane");
  const auto kind = plane.get<std::string>("kind");
  if (kind == "none" || kind == "multi-plane") plane.fail("kind", "expected the fabric of a plane");
  fabric_site plane_site = site;
  if (messages == "split") {
    plane_site.planes *= planes;
    return build_fabric(plane, plane_site);
  }
  if (messages != "hashed") config.fail("messages", expected_one_of(messages, {"hashed", "split"}));
  plane_site.nic_rate = site.nic_rate / planes;
  std::vector<std::unique_ptr<fabric>> built;
  for (int i = 0; i < planes; ++i) built.push_back(build_fabric(plane, plane_site));
  return std::make_unique<multi_plane>(std::move(built));
}

}  // namespace attnsim
