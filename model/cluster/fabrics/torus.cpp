// fabric: {kind: torus, dims: [4, 4, 4], nodes_per_router: 1, wrap: true, bandwidth: 50 GB/s,
//          latency: 1 us}
// A router at every point of the grid with a link to both neighbours in each dimension; node n is
// at router n / nodes_per_router, the last dimension varies fastest. Two routers in a dimension
// share one link. Routes go dimension by dimension, the shorter way round; of two equal ways the
// flow's hash picks one. Without `wrap` it is a mesh.
#include <fmt/format.h>

#include "model/cluster/fabrics/fabric.hpp"

namespace attnsim {
namespace {

constexpr int most_dimensions = 8, most_extent = 65536;
constexpr std::int64_t most_routers = 1 << 20;

class torus : public fabric {
 public:
  torus(const config_node& config, const fabric_site& site) : nics_per_router_(site.nics_per_node) {
    if (config.has("nodes_per_router")) {
      nics_per_router_ *= config.get_within("nodes_per_router", 1, most_nodes_per_router);
    }
    read_dimensions(config, config.get<bool>("wrap", true));
    const auto room = std::int64_t{routers_} * nics_per_router_ / site.nics_per_node;
    if (room < site.nodes) {
      config.fail("dims", fmt::format("not enough room: {} nodes fit, the cluster has {}", room,
                                      site.nodes));
    }
    build(config, site);
  }

  void route(int from, int to, std::uint64_t flow, std::vector<link_id>& path) const override {
    int at = from / nics_per_router_;
    const int goal = to / nics_per_router_;
    path.push_back(nics_.up(from));
    for (const auto& d : dimensions_) walk(d, at, d.coordinate(goal), flow, path);
    path.push_back(nics_.down(to));
  }

 private:
  struct dimension {
    int extent;
    int stride;         ///< of router numbers
    bool ring;          ///< the last router has a link to the first
    link_id first = 0;  ///< of its links

    int coordinate(int router) const { return router / stride % extent; }
    int links_of_line() const { return ring ? extent : extent - 1; }
    /// The duplex link from the first router of a router's line to the second.
    link_id line(int router) const {
      const int number = router / (stride * extent) * stride + router % stride;
      return first + 2 * static_cast<link_id>(number * links_of_line());
    }
  };

  void read_dimensions(const config_node& config, bool wrap) {
    const auto items = config.at("dims").items();
    if (items.empty() || items.size() > most_dimensions) {
      config.fail("dims", fmt::format("expected 1 to {} extents", most_dimensions));
    }
    std::int64_t routers = 1;
    for (auto item = items.rbegin(); item != items.rend(); ++item) {
      const auto extent = item->as<std::int64_t>();
      if (extent < 1 || extent > most_extent || extent * routers > most_routers) {
        item->fail(
            "", fmt::format("expected extents of at least 1 and at most {} routers", most_routers));
      }
      dimensions_.insert(dimensions_.begin(),
                         {static_cast<int>(extent), static_cast<int>(routers), wrap && extent > 2});
      routers *= extent;
    }
    routers_ = static_cast<int>(routers);
  }

  void build(const config_node& config, const fabric_site& site) {
    auto& net = site.net;
    const auto rate = read_link_rate(config, site);
    const auto latency = config.get<seconds>("latency", {});
    std::vector<vertex_id> routers;
    for (int i = 0; i < routers_; ++i) routers.push_back(net.add_switch("router"));
    nics_ = nic_links(
        site, [&](int nic) { return routers[static_cast<std::size_t>(nic / nics_per_router_)]; });
    for (auto& d : dimensions_) {
      d.first = static_cast<link_id>(net.links().size());
      for (int line = 0; line < routers_ / d.extent; ++line) {
        const int start = line / d.stride * d.stride * d.extent + line % d.stride;
        const auto at = [&](int i) {
          return routers[static_cast<std::size_t>(start + i % d.extent * d.stride)];
        };
        for (int i = 0; i < d.links_of_line(); ++i) {
          net.add_duplex(at(i), at(i + 1), rate, latency, link_kind::network);
        }
      }
    }
  }

  static void walk(const dimension& d, int& at, int goal, std::uint64_t flow,
                   std::vector<link_id>& path) {
    const int from = d.coordinate(at);
    const int ahead = (goal - from + d.extent) % d.extent;
    const int back = d.extent - ahead;
    const bool tie_goes_ahead = flow / static_cast<std::uint64_t>(d.stride) & 1;
    const bool go_ahead = d.ring ? ahead < back || (ahead == back && tie_goes_ahead) : goal > from;
    const auto line = d.line(at);
    for (int i = from; i != goal;) {
      if (go_ahead) {
        path.push_back(line + 2 * static_cast<link_id>(i));
        i = i + 1 == d.extent ? 0 : i + 1;
      } else {
        i = i == 0 ? d.extent - 1 : i - 1;
        path.push_back(line + 2 * static_cast<link_id>(i) + 1);
      }
    }
    at += (goal - from) * d.stride;
  }

  int nics_per_router_;
  int routers_ = 0;
  std::vector<dimension> dimensions_;
  nic_links nics_;
};

}  // namespace

std::unique_ptr<fabric> make_torus(const config_node& config, const fabric_site& site) {
  config.allow_only({"kind", "dims", "nodes_per_router", "wrap", "bandwidth", "latency"});
  return std::make_unique<torus>(config, site);
}

}  // namespace attnsim
