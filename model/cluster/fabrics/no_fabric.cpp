// fabric: {kind: none}
// A single node.
#include <fmt/format.h>

#include "model/cluster/fabrics/fabric.hpp"

namespace attnsim {

std::unique_ptr<fabric> make_no_fabric(const config_node& config, const fabric_site& site) {
  config.allow_only({"kind"});
  if (site.nodes > 1) {
    config.fail("kind", fmt::format("expected a fabric that joins the {} nodes", site.nodes));
  }
  return nullptr;
}

}  // namespace attnsim
