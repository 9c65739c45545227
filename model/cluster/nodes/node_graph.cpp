// node: {links: graph, graph: {vertices: [...], links: [...]}}
// The inside of a node link by link (model/cluster/explicit_graph.hpp): vertices of kind device and nic, as
// many as the cluster file says, in the order of their numbers, and switches. A device's NIC is the
// nearest, by the router's rules, latency and hops; of equally near ones that which serves the fewest.
#include <fmt/format.h>

#include <algorithm>

#include "model/cluster/explicit_graph.hpp"
#include "model/cluster/nodes/node_kind.hpp"

namespace attnsim {
namespace {

class node_graph : public node_kind {
 public:
  node_graph(const config_node& node, const node_shape& shape) : shape_(shape) {
    node.allow_only({"links", "graph"});
    const auto graph = node.at("graph");
    read_graph(graph, inside_);
    auto ends = find_ends(vertex_kind::device, "devices", shape.devices, graph);
    const auto nics = find_ends(vertex_kind::nic, "NICs", shape.nics.per_node, graph);
    ends.insert(ends.end(), nics.begin(), nics.end());
    router_ = make_graph_router(inside_, std::move(ends), 0, true, graph);
    choose_nics();
  }

  void build(network& net, const node_vertices& at) const override {
    std::vector<vertex_id> vertices;
    auto device = at.devices.begin(), nic = at.nics.begin();
    for (const auto& v : inside_.vertices()) {
      switch (v.kind) {
        case vertex_kind::device:
          vertices.push_back(*device++);
          break;
        case vertex_kind::nic:
          vertices.push_back(*nic++);
          break;
        case vertex_kind::switch_:
          vertices.push_back(net.add_vertex(
              {.node = at.node, .label = fmt::format("node{}.{}", at.node, v.label)}));
      }
    }
    for (const auto& l : inside_.links()) {
      net.add_link(vertices[l.from], vertices[l.to], l.capacity, l.latency, l.kind);
    }
  }

  void between(int from, int to, std::vector<link_id>& path) const override {
    router_->route(from, to, path);
  }
  void to_nic(int device, std::vector<link_id>& path) const override {
    router_->route(device, end_of_nic(nic_of(device)), path);
  }
  void from_nic(int device, std::vector<link_id>& path) const override {
    router_->route(end_of_nic(nic_of(device)), device, path);
  }
  int nic_of(int device) const override { return nics_[static_cast<std::size_t>(device)]; }

  bool nvlink_joins_all() const override {
    constexpr int over_nvlink_alone = 1;  // the router's first rule
    for (int d = 1; d < shape_.devices; ++d) {
      if (router_->distance(0, d).first != over_nvlink_alone) return false;
    }
    return true;
  }

 private:
  std::vector<vertex_id> find_ends(vertex_kind kind, const char* what, int expected,
                                   const config_node& graph) const {
    std::vector<vertex_id> found;
    for (vertex_id v = 0; v < inside_.vertices().size(); ++v) {
      if (inside_.vertices()[v].kind == kind) found.push_back(v);
    }
    if (static_cast<int>(found.size()) != expected) {
      graph.fail("vertices", fmt::format("expected {} {} as the cluster says, found {}", expected,
                                         what, found.size()));
    }
    return found;
  }

  int end_of_nic(int nic) const { return shape_.devices + nic; }

  void choose_nics() {
    std::vector<int> served(static_cast<std::size_t>(shape_.nics.per_node));
    for (int d = 0; d < shape_.devices && !served.empty(); ++d) {
      const auto cost = [&](int nic) {
        return std::pair(router_->distance(d, end_of_nic(nic)),
                         served[static_cast<std::size_t>(nic)]);
      };
      int best = 0;
      for (int nic = 1; nic < shape_.nics.per_node; ++nic) {
        if (cost(nic) < cost(best)) best = nic;
      }
      ++served[static_cast<std::size_t>(best)];
      nics_.push_back(best);
    }
  }

  node_shape shape_;
  network inside_;                        ///< one node
  std::unique_ptr<graph_router> router_;  ///< between devices, then NICs
  std::vector<int> nics_;                 ///< by device
};

}  // namespace

std::unique_ptr<node_kind> make_node_graph(const config_node& node, const node_shape& shape) {
  return std::make_unique<node_graph>(node, shape);
}

}  // namespace attnsim
