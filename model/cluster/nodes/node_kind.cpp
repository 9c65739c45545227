#include "model/cluster/nodes/node_kind.hpp"

#include "model/named.hpp"

namespace attnsim {
namespace {

using node_maker = std::unique_ptr<node_kind> (*)(const config_node&, const node_shape&);

constexpr name_table<node_maker, 6> node_kinds{{
    {make_nvswitch, "nvswitch"},
    {make_full_mesh, "full-mesh"},
    {make_pcie, "pcie"},
    {make_nvlink_pairs, "nvlink-pairs"},
    {make_node_graph, "graph"},
    {make_single_device, "none"},
}};

}  // namespace

std::unique_ptr<node_kind> read_node(const config_node& node, const node_shape& shape) {
  const auto make = node.get_as("links", [](auto text) { return find_value(node_kinds, text); });
  return make(node, shape);
}

}  // namespace attnsim
