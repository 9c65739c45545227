// fabric: {kind: graph, graph: {vertices: [{name: leaf0, kind: switch}, ...],
//                               links: [{from: node0.nic0, to: leaf0, bandwidth: 400 Gb/s}, ...]}}
// Switches and links one by one (model/cluster/explicit_graph.hpp). The links name the NICs of the nodes:
// nodeN.nicI. Every NIC needs one, with its own bandwidth and latency.
#include "model/cluster/explicit_graph.hpp"
#include "model/cluster/fabrics/fabric.hpp"

namespace attnsim {
namespace {

class fabric_graph : public fabric {
 public:
  fabric_graph(const config_node& config, const fabric_site& site) {
    config.allow_only({"kind", "graph"});
    const auto graph = config.at("graph");
    vertex_names nics;
    for (const auto id : site.nics) nics.emplace(site.net.name(id), id);
    const auto first = static_cast<link_id>(site.net.links().size());
    read_graph(graph, site.net, std::move(nics));
    router_ =
        make_graph_router(site.net, {site.nics.begin(), site.nics.end()}, first, false, graph);
  }

  void route(int from, int to, std::uint64_t, std::vector<link_id>& path) const override {
    router_->route(from, to, path);
  }

 private:
  std::unique_ptr<graph_router> router_;
};

}  // namespace

std::unique_ptr<fabric> make_fabric_graph(const config_node& config, const fabric_site& site) {
  return std::make_unique<fabric_graph>(config, site);
}

}  // namespace attnsim
