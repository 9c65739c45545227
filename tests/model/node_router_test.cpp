// Routes of random clusters: whatever the sizes, a route is a chain of links from its source to its
// destination that visits nothing twice, or the sizes are refused with a message.
#include "model/cluster/node_router.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/model/read_text.hpp"

namespace attnsim {
namespace node_router_test {

class random_cluster {
 public:
  explicit random_cluster(unsigned seed) : random_(seed) {}

  std::string text() {
    const int devices = number(1, 6);
    return fmt::format(
        "name: c\ndevice: ideal\nnodes: {}\ndevices_per_node: {}\nnode: {}\n"
        "nics: {{per_node: {}, bandwidth: {} GB/s, latency: 1 us}}\nfabric: {}\n",
        number(1, 14), devices, node(devices), number(1, devices), number(1, 50), fabric(true));
  }

 private:
  int number(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  std::string pick(std::vector<std::string> from) {
    return from[static_cast<std::size_t>(number(0, static_cast<int>(from.size()) - 1))];
  }

  std::string tree(int devices) {
    const int per_switch = number(1, devices), switches = (devices + per_switch - 1) / per_switch;
    return fmt::format(
        "bandwidth: 20 GB/s, devices_per_switch: {}, sockets: {}, socket_bandwidth: 9 GB/s",
        per_switch, number(1, switches));
  }
  std::string node(int devices) {
    const auto kind = devices == 1 ? pick({"none", "nvswitch", "full-mesh", "pcie", "nvlink-pairs"})
                                   : pick({"nvswitch", "full-mesh", "pcie", "nvlink-pairs"});
    if (kind == "none") return "{links: none}";
    if (kind == "pcie") return "{links: pcie, " + tree(devices) + "}";
    if (kind == "nvlink-pairs") {
      return "{links: nvlink-pairs, bandwidth: 99 GB/s, pcie: {" + tree(devices) + "}}";
    }
    return "{links: " + kind + ", bandwidth: 99 GB/s}";
  }

  std::string clos() {
    auto keys = fmt::format(
        "nodes_per_leaf: {}, oversubscription: {}, routing: {}, bandwidth: {} GB/s", number(1, 5),
        1 + number(0, 20) / 5.0, pick({"ecmp", "d-mod-k"}), number(1, 50));
    if (number(0, 1)) {
      keys += fmt::format(", levels: 3, leaves_per_pod: {}, core_oversubscription: {}",
                          number(1, 4), 1 + number(0, 20) / 5.0);
    }
    return keys;
  }
  std::string fabric(bool planes) {
    switch (number(planes ? 0 : 1, 5)) {
      case 0:
        return fmt::format("{{kind: multi-plane, planes: {}, messages: {}, plane: {}}}",
                           number(1, 4), pick({"hashed", "split"}), fabric(false));
      case 1:
        return "{kind: star}";
      case 2:
        return "{kind: fat-tree, " + clos() + "}";
      case 3:
        return "{kind: rail-optimized, " + clos() + "}";
      case 4:
        return fmt::format(
            "{{kind: dragonfly, groups: {}, routers_per_group: {}, nodes_per_router: {}, "
            "global_links: "
            "{}, routing: {}}}",
            number(1, 7), number(1, 5), number(1, 4), number(1, 4), pick({"minimal", "valiant"}));
      default:
        return fmt::format("{{kind: torus, dims: [{}, {}, {}], nodes_per_router: {}, wrap: {}}}",
                           number(1, 5), number(1, 4), number(1, 3), number(1, 3),
                           pick({"true", "false"}));
    }
  }

  std::mt19937 random_;
};

void expect_chains(const network& net) {
  for (int from = 0; from < net.devices(); ++from) {
    for (int to = 0; to < net.devices(); ++to) {
      auto at = net.device(from);
      std::set<vertex_id> seen{at};
      for (const auto id : route_of(net, from, to)) {
        ASSERT_LT(id, net.links().size());
        ASSERT_EQ(net.links()[id].from, at) << from << " to " << to;
        at = net.links()[id].to;
        ASSERT_TRUE(seen.insert(at).second) << from << " to " << to << " visits " << net.name(at);
      }
      ASSERT_EQ(at, net.device(to)) << from << " to " << to;
    }
  }
}

TEST(node_router, routes_are_chains_whatever_the_sizes) {
  int accepted = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const auto text = random_cluster(seed).text();
    SCOPED_TRACE(text);
    try {
      const auto c = read_text(text);
      expect_chains(c.network);
      ++accepted;
    } catch (const input_error& e) {
      EXPECT_NE(std::string(e.what()).find("not enough"), std::string::npos) << e.what();
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 700);
}

}  // namespace node_router_test
}  // namespace attnsim
