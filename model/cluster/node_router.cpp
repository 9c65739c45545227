#include "model/cluster/node_router.hpp"

#include <fmt/format.h>

#include "model/cluster/fabrics/fabric.hpp"
#include "model/cluster/nodes/node_kind.hpp"
#include "model/spelling.hpp"

namespace attnsim {
namespace {

constexpr int most_nics = 4096;

class node_router : public router {
 public:
  node_router(const node_shape& shape, std::unique_ptr<node_kind> inside, link_id links_of_node,
              std::unique_ptr<fabric> between)
      : shape_(shape),
        inside_(std::move(inside)),
        links_of_node_(links_of_node),
        fabric_(std::move(between)) {}

  void route(int from, int to, std::vector<link_id>& path) const override {
    const int node_a = from / shape_.devices, a = from % shape_.devices;
    const int node_b = to / shape_.devices, b = to % shape_.devices;
    if (node_a == node_b) {
      return within(node_a, path, [&] { inside_->between(a, b, path); });
    }
    const int exit = fabric_->leaves_on_rail() && inside_->nic_of(a) != inside_->nic_of(b) ? b : a;
    within(node_a, path, [&] {
      if (exit != a) inside_->between(a, exit, path);
      inside_->to_nic(exit, path);
    });
    fabric_->route(nic_number(node_a, exit), nic_number(node_b, b), flow_hash(from, to), path);
    within(node_b, path, [&] { inside_->from_nic(b, path); });
  }

 private:
  int nic_number(int node, int device) const {
    return node * shape_.nics.per_node + inside_->nic_of(device);
  }

  /// Renumbers the links that `append` appends from the node's first link.
  template <typename Append>
  void within(int node, std::vector<link_id>& path, Append append) const {
    const auto before = path.size();
    append();
    const auto first = static_cast<link_id>(node) * links_of_node_;
    for (auto i = before; i < path.size(); ++i) path[i] += first;
  }

  node_shape shape_;
  std::unique_ptr<node_kind> inside_;
  link_id links_of_node_;
  std::unique_ptr<fabric> fabric_;
};

/// Only a node given link by link may have more NICs than devices.
nic_settings read_nics(const config_node& node, int devices, bool more_than_devices) {
  node.allow_only({"per_node", "bandwidth", "latency", "attach", "pcie_bandwidth"});
  nic_settings nics;
  nics.per_node = node.get_within("per_node", 1, more_than_devices ? most_nics : devices);
  nics.rate = node.get<bandwidth>("bandwidth");
  nics.latency = node.get<seconds>("latency", {});
  nics.pcie_bandwidth = node.get<bandwidth>("pcie_bandwidth", nics.rate);
  const auto attach =
      node.get<std::string>("attach", nics.per_node == devices ? "one-per-device" : "shared");
  if (attach != "one-per-device" && attach != "shared") {
    node.fail("attach", expected_one_of(attach, {"one-per-device", "shared"}));
  }
  if (attach == "one-per-device" && nics.per_node != devices) {
    node.fail("attach",
              fmt::format("expected shared: {} NICs serve {} devices", nics.per_node, devices));
  }
  return nics;
}

std::unique_ptr<node_kind> read_inside(const config_node& root, const node_shape& shape) {
  if (root.has("node") || shape.devices > 1) return read_node(root.at("node"), shape);
  return read_node(config_node::parse_text("links: none", root.file()), shape);
}

/// The NICs of all nodes.
std::vector<vertex_id> build_nodes(network& net, int nodes, const node_shape& shape,
                                   const node_kind& kind) {
  std::vector<vertex_id> nics, devices;
  for (int n = 0; n < nodes; ++n) {
    devices.clear();
    for (int d = 0; d < shape.devices; ++d) {
      devices.push_back(
          net.add_vertex({.kind = vertex_kind::device, .node = n, .index = d, .tier = "gpu"}));
    }
    for (int i = 0; i < shape.nics.per_node; ++i) {
      nics.push_back(
          net.add_vertex({.kind = vertex_kind::nic, .node = n, .index = i, .tier = "nic"}));
    }
    kind.build(net,
               {n, devices, std::span(nics).last(static_cast<std::size_t>(shape.nics.per_node))});
  }
  return nics;
}

}  // namespace

network build_node_network(const config_node& root, int nodes, int devices_per_node) {
  node_shape shape{.devices = devices_per_node, .nics = {}};
  if (!root.has("fabric") && nodes > 1) root.fail("fabric", "missing");
  const bool joined = root.has("fabric") && root.at("fabric").get<std::string>("kind") != "none";
  if (joined || root.has("nics")) {
    const bool is_graph =
        root.has("node") && root.at("node").get<std::string>("links", "") == "graph";
    shape.nics = read_nics(root.at("nics"), devices_per_node, is_graph);
  }
  auto kind = read_inside(root, shape);
  network net;
  const auto nics = build_nodes(net, nodes, shape, *kind);
  const auto links_of_node = static_cast<link_id>(net.links().size()) / static_cast<link_id>(nodes);
  std::unique_ptr<fabric> between;
  if (root.has("fabric")) {
    between = build_fabric(root.at("fabric"), {.net = net,
                                               .nics = nics,
                                               .nodes = nodes,
                                               .nics_per_node = shape.nics.per_node,
                                               .nic_rate = shape.nics.rate,
                                               .nic_latency = shape.nics.latency,
                                               .nvlink_joins_all = kind->nvlink_joins_all()});
  }
  net.set_router(
      std::make_unique<node_router>(shape, std::move(kind), links_of_node, std::move(between)));
  return net;
}

}  // namespace attnsim
