// The network between nodes: switches and the links from NIC to NIC. Routes are worked out from the
// numbers of the NICs, without tables. A fabric is one file of this folder and one line of the
// table in fabric.cpp. Common keys: bandwidth (of a link between switches; by default a NIC's) and
// latency (of such a link; by default zero).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/cluster/network.hpp"
#include "model/config.hpp"

namespace attnsim {

/// What a fabric is built onto. NIC i of node n is number n * nics_per_node + i.
struct fabric_site {
  network& net;
  std::span<const vertex_id> nics;
  int nodes = 0;
  int nics_per_node = 0;
  bandwidth nic_rate;
  seconds nic_latency;
  bool nvlink_joins_all = false;  ///< within every node
  int planes = 1;                 ///< each link stands for so many side by side
};

class fabric {
 public:
  virtual ~fabric() = default;

  /// Appends the links from one NIC to another one. `flow` chooses among equal-cost paths.
  virtual void route(int from, int to, std::uint64_t flow, std::vector<link_id>& path) const = 0;

  /// Whether a message leaves its node by the NIC of the destination's rail (PXN).
  virtual bool leaves_on_rail() const { return false; }
};

/// Reads `fabric: {kind: KIND, ...}` and adds its links to the network.
std::unique_ptr<fabric> build_fabric(const config_node&, const fabric_site&);

/// Where nodes hang at the routers of a torus or a dragonfly.
constexpr int most_nodes_per_router = 4096;

bandwidth read_link_rate(const config_node&, const fabric_site&,
                         std::string_view key = "bandwidth");

/// The links between NICs and switches.
class nic_links {
 public:
  nic_links() = default;
  /// `switch_of(nic)` is the switch that a NIC's cable leads to.
  template <typename SwitchOf>
  nic_links(const fabric_site& site, SwitchOf switch_of)
      : first_(static_cast<link_id>(site.net.links().size())) {
    for (std::size_t i = 0; i < site.nics.size(); ++i) {
      site.net.add_duplex(site.nics[i], switch_of(static_cast<int>(i)), site.nic_rate,
                          site.nic_latency, link_kind::network);
    }
  }
  link_id up(int nic) const { return first_ + 2 * static_cast<link_id>(nic); }
  link_id down(int nic) const { return up(nic) + 1; }

 private:
  link_id first_ = 0;
};

std::unique_ptr<fabric> make_star(const config_node&, const fabric_site&);
std::unique_ptr<fabric> make_fat_tree(const config_node&, const fabric_site&);
std::unique_ptr<fabric> make_rail_optimized(const config_node&, const fabric_site&);
std::unique_ptr<fabric> make_dragonfly(const config_node&, const fabric_site&);
std::unique_ptr<fabric> make_torus(const config_node&, const fabric_site&);
std::unique_ptr<fabric> make_multi_plane(const config_node&, const fabric_site&);
std::unique_ptr<fabric> make_fabric_graph(const config_node&, const fabric_site&);
std::unique_ptr<fabric> make_no_fabric(const config_node&, const fabric_site&);

}  // namespace attnsim
