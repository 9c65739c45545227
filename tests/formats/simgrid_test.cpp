#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace simgrid_test {

using testing::AllOf;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

topology read_data(const std::string& name) {
  return read_topology(read_source("tests/formats/data/simgrid/" + name), {});
}

/// A cluster of hosts n0 to n3, with more attributes.
topology cluster_of_four(const std::string& attributes) {
  return read_text("<platform>\n<cluster id='c' prefix='n' suffix='' radical='0-3' " + attributes +
                   "/></platform>");
}

TEST(simgrid, star) {
  const auto t = read_data("clusters.xml");
  EXPECT_EQ(counts_of(t), (counts{3, 0, 1, 0, 3}));
  EXPECT_THAT(rates(t, "s-1", "star.hub"), ElementsAre(0.125));
  EXPECT_DOUBLE_EQ(t.cables[0].latency.value(), 50e-6);
}

TEST(simgrid, torus) {
  const auto t = read_data("torus.xml");
  // 3 x 2: two rings of three, three pairs.
  EXPECT_EQ(counts_of(t), (counts{6, 0, 0, 0, 2 * 3 + 3}));
  EXPECT_THAT(neighbours(t, "n0"), ElementsAre("n1", "n2", "n3"));
}

TEST(simgrid, dragonfly) {
  const auto t = read_data("dragonfly.xml");
  // Two groups of two chassis of two routers: in a group 2 links in chassis, 2 of double rate
  // between chassis; one of triple rate between the groups, from router 1 to router 0.
  EXPECT_EQ(counts_of(t), (counts{8, 0, 8, 0, 8 + 2 * 4 + 1}));
  EXPECT_THAT(rates(t, "d.router0", "d.router1"), ElementsAre(0.125));
  EXPECT_THAT(rates(t, "d.router0", "d.router2"), ElementsAre(0.25));
  EXPECT_THAT(rates(t, "d.router1", "d.router4"), ElementsAre(0.375));
}

TEST(simgrid, routes_of_one_link) {
  const auto t = read_data("routes.xml");
  EXPECT_EQ(counts_of(t), (counts{2, 1, 0, 0, 3}));
  EXPECT_EQ(t.cables[0].kind, link_kind::pcie);
  EXPECT_TRUE(t.cables[0].duplex);
  EXPECT_FALSE(t.cables[1].duplex);
  EXPECT_EQ(t.parts[1].node, 0);  // a property tells
  EXPECT_EQ(t.parts[2].kind, part_kind::nic);
}

TEST(simgrid, units) {
  const auto rate = [](const std::string& bw) {
    return cluster_of_four("lat='1ms' bw='" + bw + "'").cables[0].rate.value();
  };
  EXPECT_DOUBLE_EQ(rate("8Gbps"), 1e9);
  EXPECT_DOUBLE_EQ(rate("2KiBps"), 2048);
  EXPECT_DOUBLE_EQ(rate("1e3"), 1000);
}

TEST(simgrid, refuses_bad_files) {
  EXPECT_ERROR(read_text("<platform/>"), input_error, "f:1: expected at least one <host>");
  EXPECT_ERROR(read_text("<platform>\n<peer/></platform>"), input_error,
               "f:2: <peer>: expected zone, cluster, host, router, link or route");
  EXPECT_ERROR(cluster_of_four("lat='1us' bw='fast'"), input_error,
               "f:2: <cluster> bw: 'fast': expected a bandwidth, such as 125MBps or 1Gbps");
  EXPECT_ERROR(cluster_of_four("bw='1Gbps' lat='soon'"), input_error,
               "f:2: <cluster> lat: 'soon': expected a time, such as 50us");
  EXPECT_ERROR(cluster_of_four("bw='1Gbps' lat='0' topology='MOBIUS'"), input_error,
               "f:2: <cluster> topology: 'MOBIUS': expected FLAT, FAT_TREE, DRAGONFLY or TORUS");
  EXPECT_ERROR(cluster_of_four("bw='1Gbps' lat='0' topology='TORUS' topo_parameters='3,2'"),
               input_error,
               "f:2: <cluster> radical: '0-3': expected as many hosts as topo_parameters make, 6");
  EXPECT_ERROR(
      cluster_of_four("bw='1Gbps' lat='0' topology='FAT_TREE' topo_parameters='2;2;1;1'"),
      input_error,
      "f:2: <cluster> topo_parameters: '2;2;1;1': expected levels;children;parents;cables, "
      "such as 2;4,4;1,2;1,2");
  EXPECT_ERROR(read_text("<platform><host id='a'/>\n<host id='a'/></platform>"), input_error,
               "f:2: <host> id: 'a': expected a name that no other host or router has");
  EXPECT_ERROR(
      read_text("<platform><host id='a'/><host id='b'/>\n<route src='a' dst='b'/></platform>"),
      input_error, "f:2: <route>: expected one <link_ctn>, as with the routing Floyd or Dijkstra");
  EXPECT_ERROR(read_text("<platform><host id='a'/>\n<route src='a' dst='b'><link_ctn id='l'/>"
                         "</route></platform>"),
               input_error, "f:2: <link_ctn> id: 'l': expected the name of a link");
  EXPECT_ERROR(
      read_text("<platform>\n<cluster radical='0-99999999' prefix='' suffix=''/></platform>"),
      input_error, "f:2: <cluster> radical: '0-99999999': expected at most 131072 hosts");
}

TEST(simgrid_examples, backbone) {
  READ_SHARED_OR_SKIP(t, "simgrid/cluster_backbone.xml", {});
  // 100 hosts with a link up and one down, and the backbone that all messages cross.
  EXPECT_EQ(counts_of(t), (counts{100, 0, 2, 0, 2 * 100 + 1}));
  EXPECT_THAT(rates(t, "cluster0.in", "cluster0.out"), ElementsAre(2.25));
  EXPECT_THAT(rates(t, "node-7.simgrid.org", "cluster0.in"), ElementsAre(0.125));
}

TEST(simgrid_examples, dragonfly) {
  READ_SHARED_OR_SKIP(t, "simgrid/cluster_dragonfly.xml", {});
  // 3 groups of 4 chassis of 5 routers of 2 hosts. A group: 4 x 10 links in chassis, 5 x 6 between
  // chassis; 3 between groups.
  EXPECT_EQ(counts_of(t), (counts{120, 0, 60, 0, 120 + 3 * (40 + 30) + 3}));
}

TEST(simgrid_examples, fat_tree) {
  READ_SHARED_OR_SKIP(t, "simgrid/cluster_fat_tree.xml", {});
  // Four leaves of four hosts, two spines, two cables to each.
  EXPECT_EQ(counts_of(t), (counts{16, 0, 4 + 2, 0, 16 + 4 * 2 * 2}));
  EXPECT_THAT(rates(t, link_kind::network), AllOf(SizeIs(32), Each(DoubleNear(0.125, 1e-12))));
}

}  // namespace simgrid_test
}  // namespace attnsim::formats
