// fabric: {kind: star}
// One switch without limits: only the NICs limit.
#include "model/cluster/fabrics/fabric.hpp"

namespace attnsim {
namespace {

class star : public fabric {
 public:
  explicit star(const fabric_site& site)
      : nics_(site, [hub = site.net.add_switch("switch")](int) { return hub; }) {}

  void route(int from, int to, std::uint64_t, std::vector<link_id>& path) const override {
    path.push_back(nics_.up(from));
    path.push_back(nics_.down(to));
  }

 private:
  nic_links nics_;
};

}  // namespace

std::unique_ptr<fabric> make_star(const config_node& config, const fabric_site& site) {
  config.allow_only({"kind"});
  return std::make_unique<star>(site);
}

}  // namespace attnsim
