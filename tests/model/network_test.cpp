#include "model/cluster/network.hpp"

#include <gmock/gmock.h>

#include <set>

namespace attnsim {
namespace network_test {

using testing::ElementsAre;
using testing::IsEmpty;

/// Two devices of one node on a switch outside.
struct two_devices : testing::Test {
  network net;
  vertex_id a = net.add_vertex({.kind = vertex_kind::device, .node = 3, .index = 0, .tier = "gpu"});
  vertex_id b = net.add_vertex({.kind = vertex_kind::device, .node = 3, .index = 1, .tier = "gpu"});
  vertex_id hub = net.add_switch("leaf");
  link_id up = net.add_duplex(a, hub, bandwidth(10), seconds(1), link_kind::nvlink);
  link_id down = net.add_link(hub, b, bandwidth(20), seconds(2), link_kind::network);
};

class fixed_route : public router {
 public:
  explicit fixed_route(std::vector<link_id> path) : path_(std::move(path)) {}
  void route(int, int, std::vector<link_id>& path) const override {
    path.insert(path.end(), path_.begin(), path_.end());
  }

 private:
  std::vector<link_id> path_;
};

TEST_F(two_devices, are_numbered_in_order_of_addition) {
  EXPECT_EQ(net.devices(), 2);
  EXPECT_EQ(net.device(1), b);
  EXPECT_EQ(net.node_of(1), 3);
}

TEST_F(two_devices, names) {
  EXPECT_EQ(net.name(a), "node3.gpu0");
  EXPECT_EQ(net.name(hub), "leaf0");
  EXPECT_EQ(net.name(net.add_switch("leaf")), "leaf1");
  EXPECT_EQ(net.name(net.add_switch("spine")), "spine0");
  EXPECT_EQ(net.name(net.add_vertex({.label = "mine"})), "mine");
  EXPECT_EQ(net.name(up, "->"), "node3.gpu0->leaf0");
  EXPECT_EQ(net.name(up + 1, " to "), "leaf0 to node3.gpu0");
}

TEST_F(two_devices, links_are_found_by_name) {
  EXPECT_THAT(net.find_links("leaf0->node3.gpu1"), ElementsAre(down));
  const auto beside = net.add_link(hub, b, bandwidth(20), seconds(2), link_kind::network);
  EXPECT_THAT(net.find_links("leaf0->node3.gpu1"), ElementsAre(down, beside));
  EXPECT_THAT(net.find_links("node3.gpu1->leaf0"), IsEmpty());
  EXPECT_THAT(net.find_links("leaf0"), IsEmpty());
}

TEST_F(two_devices, route_is_appended_and_empty_to_itself) {
  net.set_router(std::make_unique<fixed_route>(std::vector{up, down}));
  std::vector<link_id> path{7};
  net.route(0, 1, path);
  EXPECT_THAT(path, ElementsAre(7, up, down));
  net.route(1, 1, path);
  EXPECT_THAT(path, ElementsAre(7, up, down));
}

TEST_F(two_devices, slowest_kind_of_link_is_the_transport) {
  const auto pcie = net.add_link(a, b, bandwidth(1), {}, link_kind::pcie);
  EXPECT_EQ(transport_of(net, {}), link_kind::nvlink);
  EXPECT_EQ(transport_of(net, std::vector{up}), link_kind::nvlink);
  EXPECT_EQ(transport_of(net, std::vector{pcie, up}), link_kind::pcie);
  EXPECT_EQ(transport_of(net, std::vector{up, pcie, down}), link_kind::network);
}

TEST_F(two_devices, degraded_link_keeps_its_other_direction) {
  net.degrade(up, 0.25);
  EXPECT_EQ(net.links()[up].capacity, bandwidth(2.5));
  EXPECT_EQ(net.links()[up + 1].capacity, bandwidth(10));
}

TEST(flow_hash, tells_pairs_and_directions_apart) {
  std::set<std::uint64_t> seen;
  for (int a = 0; a < 100; ++a) {
    for (int b = 0; b < 100; ++b) seen.insert(flow_hash(a, b));
  }
  EXPECT_EQ(seen.size(), 10000u);
}

TEST(flow_hash, spreads_evenly) {
  std::vector<int> bins(8);
  for (int a = 0; a < 100; ++a) {
    for (int b = 0; b < 80; ++b) ++bins[flow_hash(a, b) % 8];
  }
  for (const int n : bins) EXPECT_NEAR(n, 1000, 100);  // 3 sigma of a binomial: 89
}

}  // namespace network_test
}  // namespace attnsim
