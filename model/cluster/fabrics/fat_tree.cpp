// fabric: {kind: fat-tree, nodes_per_leaf: 16, ...}
// All NICs of a node on one leaf (clos.hpp); nodes_per_leaf or radix is needed.
#include "model/cluster/fabrics/clos.hpp"

namespace attnsim {

std::unique_ptr<fabric> make_fat_tree(const config_node& config, const fabric_site& site) {
  config.allow_only({"kind", "levels", "nodes_per_leaf", "oversubscription", "radix", "routing",
                     "leaves_per_pod", "core_oversubscription", "bandwidth", "latency"});
  if (!config.has("nodes_per_leaf") && !config.has("radix"))
    config.fail("nodes_per_leaf", "missing");
  return std::make_unique<clos>(config, site, 1);
}

}  // namespace attnsim
