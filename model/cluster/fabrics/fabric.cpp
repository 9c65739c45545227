#include "model/cluster/fabrics/fabric.hpp"

#include "model/named.hpp"

namespace attnsim {
namespace {

using maker = std::unique_ptr<fabric> (*)(const config_node&, const fabric_site&);

constexpr name_table<maker, 8> kinds{{
    {make_star, "star"},
    {make_fat_tree, "fat-tree"},
    {make_rail_optimized, "rail-optimized"},
    {make_dragonfly, "dragonfly"},
    {make_torus, "torus"},
    {make_multi_plane, "multi-plane"},
    {make_fabric_graph, "graph"},
    {make_no_fabric, "none"},
}};

}  // namespace

std::unique_ptr<fabric> build_fabric(const config_node& config, const fabric_site& site) {
  const auto make = config.get_as("kind", [](auto text) { return find_value(kinds, text); });
  return make(config, site);
}

bandwidth read_link_rate(const config_node& config, const fabric_site& site, std::string_view key) {
  return config.has(key) ? config.get<bandwidth>(key) * site.planes : site.nic_rate;
}

}  // namespace attnsim
