#include "tests/bench/clusters.hpp"

#include <fmt/format.h>

namespace attnsim {
namespace {

std::string fabric(const std::string& kind, int hosts, double latency) {
  if (kind == "fat-tree") {
    return fmt::format("{{kind: fat-tree, nodes_per_leaf: 16, routing: d-mod-k, latency: {} us}}",
                       latency);
  }
  if (kind == "dragonfly") {
    return fmt::format(
        "{{kind: dragonfly, groups: {}, routers_per_group: 16, nodes_per_router: 4, latency: {} "
        "us}}",
        hosts / 64, latency);
  }
  return "{kind: star}";
}

}  // namespace

cluster scenario_cluster(const std::string& kind, int hosts, double latency) {
  return read_cluster(config_node::parse_text(
      fmt::format("name: {}\ndevice: ideal\nnodes: {}\ndevices_per_node: 1\nnode: {{links: none}}\n"
                  "nics: {{per_node: 1, bandwidth: 50 GB/s, latency: {} us}}\nfabric: {}\n",
                  kind, hosts, latency, fabric(kind, hosts, latency)),
      "scenario"));
}

}  // namespace attnsim
