// fabric: {kind: rail-optimized, nodes_per_leaf: 32, pxn: true, ...}
// NIC i of every node is on a leaf of rail i (clos.hpp); spines join the leaves of all rails. By
// default a rail is one leaf. With `pxn` a message to another rail first goes over NVLink to the
// local device of the destination's rail and then along that rail; without it goes over a spine.
// Default: true where NVLink joins all devices of a node.
#include "model/cluster/fabrics/clos.hpp"

namespace attnsim {
namespace {

class rail_optimized : public clos {
 public:
  rail_optimized(const config_node& config, const fabric_site& site)
      : clos(config, site, site.nics_per_node),
        pxn_(config.get<bool>("pxn", site.nvlink_joins_all)) {
    if (pxn_ && !site.nvlink_joins_all) {
      config.fail("pxn", "expected false: NVLink does not join all devices of a node");
    }
  }
  bool leaves_on_rail() const override { return pxn_; }

 private:
  bool pxn_;
};

}  // namespace

std::unique_ptr<fabric> make_rail_optimized(const config_node& config, const fabric_site& site) {
  config.allow_only({"kind", "pxn", "levels", "nodes_per_leaf", "oversubscription", "radix",
                     "routing", "leaves_per_pod", "core_oversubscription", "bandwidth", "latency"});
  return std::make_unique<rail_optimized>(config, site);
}

}  // namespace attnsim
