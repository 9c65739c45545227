// fabric: {kind: dragonfly, groups: 16, routers_per_group: 16, nodes_per_router: 4, global_links:
// 1,
//          routing: minimal, bandwidth: 50 GB/s, latency: 1 us, global_bandwidth: 50 GB/s,
//          global_latency: 1 us}
// Routers of a group are joined all to all; each has `global_links` links to other groups, dealt
// out evenly: every two groups share the same number of links, at least one. A minimal route is
// local, global, local, with the global link chosen by hash; `valiant` goes through a third group
// chosen by hash. Kim, Dally, Scott, Abts: Technology-Driven, Highly-Scalable Dragonfly Topology,
// ISCA 2008. global_bandwidth and global_latency default to those of the local links.
#include <fmt/format.h>

#include <algorithm>

#include "model/cluster/fabrics/fabric.hpp"
#include "model/cluster/nodes/node_kind.hpp"
#include "model/spelling.hpp"

namespace attnsim {
namespace {

constexpr int most_groups = 4096, most_group = 4096, most_links = 4096;
constexpr int most_total_routers = 1 << 20;

class dragonfly : public fabric {
 public:
  dragonfly(const config_node& config, const fabric_site& site)
      : groups_(config.get_within("groups", 1, most_groups)),
        routers_(config.get_within("routers_per_group", 1, most_group)),
        nics_per_router_(config.get_within("nodes_per_router", 1, most_nodes_per_router) *
                         site.nics_per_node),
        global_links_(config.has("global_links") ? config.get_within("global_links", 1, most_links)
                                                 : 1),
        valiant_(read_valiant(config)) {
    check_sizes(config, site);
    if (groups_ > 1) parallel_ = routers_ * global_links_ / (groups_ - 1);
    build(config, site);
  }

  void route(int from, int to, std::uint64_t flow, std::vector<link_id>& path) const override {
    position at = position_of(from);
    const position goal = position_of(to);
    path.push_back(nics_.up(from));
    if (valiant_ && at.group != goal.group && groups_ > 2) {
      cross(at, third_group(at.group, goal.group, flow), flow, path);
      flow /= static_cast<std::uint64_t>(groups_);
    }
    if (at.group != goal.group) cross(at, goal.group, flow, path);
    if (at.router != goal.router) path.push_back(local(at.group, at.router, goal.router));
    path.push_back(nics_.down(to));
  }

 private:
  struct position {
    int group;
    int router;
  };

  static bool read_valiant(const config_node& config) {
    if (!config.has("routing")) return false;
    const auto name = config.get<std::string>("routing");
    if (name != "minimal" && name != "valiant") {
      config.fail("routing", expected_one_of(name, {"minimal", "valiant"}));
    }
    return name == "valiant";
  }

  void check_sizes(const config_node& config, const fabric_site& site) const {
    if (std::int64_t{groups_} * routers_ > most_total_routers) {
      config.fail("groups", fmt::format("expected at most {} routers", most_total_routers));
    }
    const auto room = std::int64_t{groups_} * routers_ * nics_per_router_ / site.nics_per_node;
    if (room < site.nodes) {
      config.fail("groups", fmt::format("not enough room: {} nodes fit, the cluster has {}", room,
                                        site.nodes));
    }
    if (routers_ * global_links_ < groups_ - 1) {
      config.fail("global_links",
                  fmt::format("not enough ports: a group has {} global links for {} other groups",
                              routers_ * global_links_, groups_ - 1));
    }
  }

  void build(const config_node& config, const fabric_site& site) {
    auto& net = site.net;
    const auto rate = read_link_rate(config, site);
    const auto latency = config.get<seconds>("latency", {});
    std::vector<vertex_id> routers;
    for (int i = 0; i < groups_ * routers_; ++i) routers.push_back(net.add_switch("router"));
    const auto router = [&](int group, int number) {
      return routers[static_cast<std::size_t>(group * routers_ + number)];
    };
    nics_ = nic_links(
        site, [&](int nic) { return routers[static_cast<std::size_t>(nic / nics_per_router_)]; });
    first_local_ = static_cast<link_id>(net.links().size());
    for (int g = 0; g < groups_; ++g) {
      for (int a = 0; a < routers_; ++a) {
        for (int b = a + 1; b < routers_; ++b) {
          net.add_duplex(router(g, a), router(g, b), rate, latency, link_kind::network);
        }
      }
    }
    first_global_ = static_cast<link_id>(net.links().size());
    const auto global_rate =
        config.has("global_bandwidth") ? read_link_rate(config, site, "global_bandwidth") : rate;
    const auto global_latency = config.get<seconds>("global_latency", latency);
    for (int g = 0; g < groups_; ++g) {
      for (int h = g + 1; h < groups_; ++h) {
        for (int i = 0; i < parallel_; ++i) {
          net.add_duplex(router(g, gateway(g, h, i)), router(h, gateway(h, g, i)), global_rate,
                         global_latency, link_kind::network);
        }
      }
    }
  }

  position position_of(int nic) const {
    const int router = nic / nics_per_router_;
    return {router / routers_, router % routers_};
  }

  /// The router of group `from` that has the i-th link to group `to`: ports are dealt out to the
  /// other groups in turn, starting with the next one.
  int gateway(int from, int to, int i) const {
    const int turn = (to - from - 1 + groups_) % groups_;
    return (turn * parallel_ + i) / global_links_;
  }

  link_id local(int group, int a, int b) const {
    const auto pairs = static_cast<link_id>(routers_ * (routers_ - 1) / 2);
    const auto first = first_local_ + 2 * static_cast<link_id>(group) * pairs;
    return a < b ? first + 2 * pair_number(a, b, routers_)
                 : first + 2 * pair_number(b, a, routers_) + 1;
  }

  link_id global(int from, int to, int i) const {
    const auto pair = from < to ? pair_number(from, to, groups_) : pair_number(to, from, groups_);
    const auto number = pair * static_cast<link_id>(parallel_) + static_cast<link_id>(i);
    return first_global_ + 2 * number + (from < to ? 0 : 1);
  }

  /// Appends the links to another group and moves there.
  void cross(position& at, int group, std::uint64_t flow, std::vector<link_id>& path) const {
    const int i = static_cast<int>(flow % static_cast<std::uint64_t>(parallel_));
    const int exit = gateway(at.group, group, i);
    if (at.router != exit) path.push_back(local(at.group, at.router, exit));
    path.push_back(global(at.group, group, i));
    at = {group, gateway(group, at.group, i)};
  }

  int third_group(int a, int b, std::uint64_t flow) const {
    const auto others = static_cast<std::uint64_t>(groups_ - 2);
    int group = static_cast<int>((flow >> 32) % others);
    if (group >= std::min(a, b)) ++group;
    if (group >= std::max(a, b)) ++group;
    return group;
  }

  int groups_;
  int routers_;  ///< of a group
  int nics_per_router_;
  int global_links_;  ///< of a router
  bool valiant_;
  int parallel_ = 0;  ///< links that two groups share
  nic_links nics_;
  link_id first_local_ = 0, first_global_ = 0;
};

}  // namespace

std::unique_ptr<fabric> make_dragonfly(const config_node& config, const fabric_site& site) {
  config.allow_only({"kind", "groups", "routers_per_group", "nodes_per_router", "global_links",
                     "routing", "bandwidth", "latency", "global_bandwidth", "global_latency"});
  return std::make_unique<dragonfly>(config, site);
}

}  // namespace attnsim
