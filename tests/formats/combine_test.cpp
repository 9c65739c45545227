#include "formats/combine.hpp"

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace combine_test {

using testing::Contains;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

/// Two GPUs and two NICs of 25 GB/s on a switch.
topology small_node(double nvlink = 100e9) {
  topology t{.what = scope::node, .device = "h100-sxm5", .nic_rate = bandwidth(25e9)};
  const auto g = t.add(part_kind::device, "gpu0", 0), h = t.add(part_kind::device, "gpu1", 0);
  const auto x = t.add(part_kind::nic, "nic0", 0), y = t.add(part_kind::nic, "nic1", 0);
  const auto s = t.add(part_kind::switch_, "pcie0", 0);
  for (const auto part : {g, h, x, y}) t.join(part, s, bandwidth(30e9), {}, link_kind::pcie);
  t.join(g, h, bandwidth(nvlink), {}, link_kind::nvlink);
  return t;
}

/// Three hosts on two leaves under a spine; no rates.
topology small_fabric() {
  topology t{.what = scope::fabric};
  const auto l = t.add(part_kind::switch_, "l"), m = t.add(part_kind::switch_, "m");
  const auto s = t.add(part_kind::switch_, "s");
  for (const auto leaf : {l, l, m}) {
    const auto host = t.add(part_kind::host, "h" + std::to_string(t.parts.size()));
    t.join(host, leaf, {}, {}, link_kind::network);
  }
  t.join(l, s, {}, {}, link_kind::network);
  t.join(m, s, {}, {}, link_kind::network);
  return t;
}

TEST(combine, equal_nodes_become_a_number) {
  const auto m = combine({small_node(), small_node()}, {});
  EXPECT_EQ(m.nodes, 2);
  EXPECT_EQ(counts_of(m.inside), (counts{2, 2, 1, 0, 5}));
  EXPECT_FALSE(m.fabric);
}

TEST(combine, different_nodes_are_joined_by_a_switch) {
  const auto m = combine({small_node(), small_node(50e9)}, {});
  EXPECT_EQ(m.inside.what, scope::cluster);
  EXPECT_EQ(counts_of(m.inside), (counts{4, 4, 3, 0, 2 * 5 + 4}));
  EXPECT_THAT(rates(m.inside, "node1.gpu0", "node1.gpu1"), ElementsAre(50));
  EXPECT_THAT(rates(m.inside, "node0.nic1", "switch0"), ElementsAre(25));
  EXPECT_THAT(m.said.assumed,
              Contains("the 2 nodes differ: joined by one switch that never limits"));
}

TEST(combine, a_fabric_joins_the_nics_of_nodes) {
  const auto m = combine({small_fabric(), small_node()}, {});
  EXPECT_EQ(m.nodes, 3);
  ASSERT_TRUE(m.fabric);
  // Both NICs of a host go to the host's switch. From below leaf l gets 4 x 25 GB/s, m gets 2 x 25.
  EXPECT_EQ(counts_of(*m.fabric), (counts{0, 6, 3, 0, 6 + 2}));
  EXPECT_THAT(rates(*m.fabric, "node1.nic1", "l"), ElementsAre(25));
  EXPECT_THAT(rates(*m.fabric, "node2.nic0", "m"), ElementsAre(25));
  EXPECT_THAT(rates(*m.fabric, "l", "s"), ElementsAre(100));
  EXPECT_THAT(rates(*m.fabric, "m", "s"), ElementsAre(50));
}

TEST(combine, rates_of_the_fabric_file_stay) {
  auto fabric = small_fabric();
  for (auto& c : fabric.cables) c.rate = bandwidth(40e9);
  const auto m = combine({small_node(), fabric}, {});
  EXPECT_THAT(rates(*m.fabric, "node0.nic0", "l"), ElementsAre(40));
  EXPECT_THAT(rates(*m.fabric, "l", "s"), ElementsAre(40));
}

TEST(combine, hosts_that_no_file_describes_are_assumed) {
  const auto m = combine({small_fabric()}, {.nic_rate = bandwidth(10e9), .devices_per_host = 4});
  EXPECT_EQ(counts_of(m.inside), (counts{4, 1, 1, 0, 4 + 4}));
  EXPECT_THAT(rates(*m.fabric, "l", "s"), ElementsAre(20));
  EXPECT_THAT(m.said.assumed, Contains("a host has 4 devices and 1 NIC"));
  EXPECT_THAT(m.said.missing, Contains(HasSubstr("what a host holds")));
}

TEST(combine, nvlink_domains_of_hosts_are_nodes) {
  auto fabric = small_fabric();
  fabric.parts.pop_back();  // the third host
  fabric.cables.erase(fabric.cables.begin() + 2);
  for (auto& p : fabric.parts) {
    if (p.kind == part_kind::host) p.node = 0;
  }
  const auto m = combine({fabric, small_node()}, {.device = "b200"});
  EXPECT_EQ(m.nodes, 1);
  // Two hosts of two GPUs, and an NVSwitch of 18 links of 50 GB/s for all four.
  EXPECT_EQ(counts_of(m.inside), (counts{4, 4, 2 + 1, 0, 2 * 5 + 4}));
  EXPECT_THAT(rates(m.inside, "host1.gpu1", "nvswitch0"), ElementsAre(DoubleEq(900)));
  EXPECT_EQ(m.fabric->count(part_kind::nic), 4u);
}

TEST(combine, refuses_files_that_do_not_go_together) {
  EXPECT_ERROR(combine({small_fabric(), small_fabric()}, {}), input_error,
               "expected one file of a fabric at most");
  topology all{.what = scope::cluster};
  EXPECT_ERROR(combine({all, small_node()}, {}), input_error,
               "expected one file that describes a whole cluster, and no others beside it");
  EXPECT_ERROR(combine({small_node(), small_node(1e9), small_fabric()}, {}), input_error,
               "the nodes' files describe different nodes: a fabric file joins equal ones");
  EXPECT_ERROR(combine({topology{.what = scope::fabric}}, {}), input_error,
               "the fabric's file has no hosts");
}

}  // namespace combine_test
}  // namespace attnsim::formats
