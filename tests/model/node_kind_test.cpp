#include "model/cluster/nodes/node_kind.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/model/read_text.hpp"

namespace attnsim {
namespace node_kind_test {

using testing::ElementsAre;

/// Two nodes of `devices` with `nics` NICs of 10 GB/s on a star.
std::string two_nodes(int devices, const std::string& node, int nics) {
  return fmt::format(
      "name: c\ndevice: ideal\nnodes: 2\ndevices_per_node: {}\nnode: {}\n"
      "nics: {{per_node: {}, bandwidth: 10 GB/s, latency: 1 us}}\nfabric: {{kind: star}}\n",
      devices, node, nics);
}

/// Capacity in GB/s of the links from one device to another.
std::vector<double> rates(const network& net, int from, int to) {
  std::vector<double> result;
  for (const auto id : route_of(net, from, to)) {
    result.push_back(net.links()[id].capacity.value() / 1e9);
  }
  return result;
}

TEST(pair_number, is_lexicographic) {
  // 01 02 03 12 13 23
  EXPECT_EQ(pair_number(0, 1, 4), 0u);
  EXPECT_EQ(pair_number(0, 3, 4), 2u);
  EXPECT_EQ(pair_number(1, 2, 4), 3u);
  EXPECT_EQ(pair_number(2, 3, 4), 5u);
}

TEST(node_shape, nics_are_shared_by_neighbours) {
  // 8 devices on 3 NICs: d * 3 / 8 = 0 0 0 1 1 1 2 2
  const node_shape shape{.devices = 8, .nics = {.per_node = 3}};
  EXPECT_EQ(shape.nic_of(2), 0);
  EXPECT_EQ(shape.nic_of(3), 1);
  EXPECT_EQ(shape.nic_of(7), 2);
  EXPECT_EQ(shape.first_device_of(0), 0);
  EXPECT_EQ(shape.first_device_of(1), 3);
  EXPECT_EQ(shape.first_device_of(2), 6);
}

TEST(nvswitch, routes_and_counts) {
  const auto c =
      read_text(two_nodes(4, "{links: nvswitch, bandwidth: 100 GB/s, latency: 1 us}", 4));
  const auto& net = c.network;
  // A node: 4 devices, 4 NICs, a switch; 4 + 4 cables. Outside: a switch and 8 cables.
  EXPECT_EQ(net.vertices().size(), 2u * 9 + 1);
  EXPECT_EQ(net.links().size(), 2u * (2 * 8 + 8));
  EXPECT_THAT(stops(net, 1, 3), ElementsAre("node0.gpu1", "node0.nvswitch0", "node0.gpu3"));
  EXPECT_THAT(stops(net, 1, 6),
              ElementsAre("node0.gpu1", "node0.nic1", "switch0", "node1.nic2", "node1.gpu2"));
  EXPECT_THAT(rates(net, 1, 6), ElementsAre(10, 10, 10, 10));
  EXPECT_EQ(transport_of(net, route_of(net, 5, 7)), link_kind::nvlink);
  EXPECT_EQ(transport_of(net, route_of(net, 1, 6)), link_kind::network);
  EXPECT_DOUBLE_EQ(latency_of(net, 1, 3).value(), 2e-6);
  EXPECT_DOUBLE_EQ(latency_of(net, 1, 6).value(), 2e-6);
}

TEST(nvswitch, shared_nics) {
  // 4 devices on 2 NICs: 0, 1 on nic0 and 2, 3 on nic1.
  const auto c = read_text(two_nodes(4, "{links: nvswitch, bandwidth: 100 GB/s}", 2));
  EXPECT_THAT(stops(c.network, 1, 7),
              ElementsAre("node0.gpu1", "node0.nic0", "switch0", "node1.nic1", "node1.gpu3"));
}

TEST(full_mesh, divides_a_devices_bandwidth_over_its_peers) {
  const auto c = read_text(two_nodes(4, "{links: full-mesh, bandwidth: 90 GB/s}", 4));
  const auto& net = c.network;
  // A node: 6 pairs and 4 NIC cables. Outside: 8 cables.
  EXPECT_EQ(net.links().size(), 2u * (2 * 10 + 8));
  EXPECT_THAT(stops(net, 3, 1), ElementsAre("node0.gpu3", "node0.gpu1"));
  EXPECT_THAT(stops(net, 4, 7), ElementsAre("node1.gpu0", "node1.gpu3"));
  EXPECT_THAT(rates(net, 3, 1), ElementsAre(30));
  EXPECT_THAT(stops(net, 3, 4),
              ElementsAre("node0.gpu3", "node0.nic3", "switch0", "node1.nic0", "node1.gpu0"));
}

const std::string tree =
    "bandwidth: 20 GB/s, latency: 1 us, devices_per_switch: 2, uplink_bandwidth: 16 GB/s, "
    "sockets: 2, socket_bandwidth: 12 GB/s, socket_latency: 3 us";

TEST(pcie, climbs_as_far_as_it_must) {
  // 8 devices, 2 a switch: switches 0, 1 on socket 0 and 2, 3 on socket 1; NICs 0, 1 on the
  // switches of their first devices 0 and 4: switches 0 and 2.
  const auto c = read_text(two_nodes(8, "{links: pcie, " + tree + "}", 2));
  const auto& net = c.network;
  // A node: 8 devices, 2 NICs, 4 switches, 2 sockets; 10 + 4 + 1 cables. Outside: 4 cables, 1
  // switch.
  EXPECT_EQ(net.vertices().size(), 2u * 16 + 1);
  EXPECT_EQ(net.links().size(), 2u * (2 * 15 + 4));
  EXPECT_THAT(stops(net, 0, 1), ElementsAre("node0.gpu0", "node0.pcie0", "node0.gpu1"));
  EXPECT_THAT(stops(net, 0, 3), ElementsAre("node0.gpu0", "node0.pcie0", "node0.socket0",
                                            "node0.pcie1", "node0.gpu3"));
  EXPECT_THAT(stops(net, 7, 0), ElementsAre("node0.gpu7", "node0.pcie3", "node0.socket1",
                                            "node0.socket0", "node0.pcie0", "node0.gpu0"));
  EXPECT_THAT(rates(net, 7, 0), ElementsAre(20, 16, 12, 16, 20));
  EXPECT_DOUBLE_EQ(latency_of(net, 7, 0).value(), 7e-6);
  EXPECT_THAT(stops(net, 3, 12),
              ElementsAre("node0.gpu3", "node0.pcie1", "node0.socket0", "node0.pcie0", "node0.nic0",
                          "switch0", "node1.nic1", "node1.pcie2", "node1.gpu4"));
  EXPECT_EQ(transport_of(net, route_of(net, 0, 7)), link_kind::pcie);
}

TEST(pcie, without_peer_access_messages_go_through_the_memory_of_the_senders_socket) {
  const auto with = [](const std::string& access) {
    return read_text(two_nodes(8, "{links: pcie, " + tree + ", " + access + "}", 2)).network;
  };
  const auto none = with("peer_access: none, host_bandwidth: 50 GB/s");
  EXPECT_THAT(stops(none, 7, 0),
              ElementsAre("node0.gpu7", "node0.pcie3", "node0.socket1", "node0.memory1",
                          "node0.socket1", "node0.socket0", "node0.pcie0", "node0.gpu0"));
  EXPECT_THAT(rates(none, 0, 1), ElementsAre(20, 16, 50, 50, 16, 20));
  EXPECT_EQ(transport_of(none, route_of(none, 0, 1)), link_kind::host_memory);
  EXPECT_THAT(stops(none, 8, 9),
              ElementsAre("node1.gpu0", "node1.pcie0", "node1.socket0", "node1.memory0",
                          "node1.socket0", "node1.pcie0", "node1.gpu1"));
  const auto within = with("peer_access: switch");
  EXPECT_EQ(transport_of(within, route_of(within, 0, 1)), link_kind::pcie);
  EXPECT_EQ(transport_of(within, route_of(within, 0, 2)), link_kind::host_memory);
  EXPECT_THAT(rates(within, 0, 2), ElementsAre(20, 16, 160, 160, 16, 20));
  EXPECT_EQ(transport_of(within, route_of(within, 0, 8)), link_kind::network);
}

TEST(pcie, devices_need_not_fill_the_switches) {
  // 5 devices, 2 a switch: 3 switches, 3 sockets: a triangle of sockets.
  const auto c = read_text(two_nodes(5,
                                     "{links: pcie, bandwidth: 20 GB/s, devices_per_switch: 2, "
                                     "sockets: 3, socket_bandwidth: 10 GB/s}",
                                     1));
  EXPECT_EQ(c.network.links().size(), 2u * 2 * (6 + 3 + 3) + 4);
  EXPECT_THAT(stops(c.network, 4, 2), ElementsAre("node0.gpu4", "node0.pcie2", "node0.socket2",
                                                  "node0.socket1", "node0.pcie1", "node0.gpu2"));
}

TEST(nvlink_pairs, bridge_within_a_pair_and_pcie_beyond) {
  const auto c = read_text(two_nodes(5,
                                     "{links: nvlink-pairs, bandwidth: 300 GB/s, pcie: {bandwidth: "
                                     "20 GB/s, devices_per_switch: 5}}",
                                     1));
  const auto& net = c.network;
  // A node: 5 devices, a NIC and the switch have 7 cables up; 2 bridges. Outside: 2 cables.
  EXPECT_EQ(net.links().size(), 2u * 2 * (7 + 2) + 4);
  EXPECT_THAT(stops(net, 2, 3), ElementsAre("node0.gpu2", "node0.gpu3"));
  EXPECT_THAT(stops(net, 8, 7), ElementsAre("node1.gpu3", "node1.gpu2"));
  EXPECT_THAT(rates(net, 3, 2), ElementsAre(300));
  EXPECT_THAT(stops(net, 3, 4), ElementsAre("node0.gpu3", "node0.pcie0", "node0.gpu4"));
  EXPECT_EQ(transport_of(net, route_of(net, 2, 3)), link_kind::nvlink);
  EXPECT_EQ(transport_of(net, route_of(net, 3, 4)), link_kind::pcie);
  EXPECT_THAT(stops(net, 4, 9), ElementsAre("node0.gpu4", "node0.pcie0", "node0.nic0", "switch0",
                                            "node1.nic0", "node1.pcie0", "node1.gpu4"));
}

TEST(single_device, has_its_nic_alone) {
  const auto c = read_text(two_nodes(1, "{links: none}", 1));
  EXPECT_EQ(c.network.links().size(), 2u * 4);
  EXPECT_THAT(stops(c.network, 0, 1),
              ElementsAre("node0.gpu0", "node0.nic0", "switch0", "node1.nic0", "node1.gpu0"));
}

TEST(read_node, refuses_bad_values) {
  const auto read = [](int devices, const std::string& node) {
    read_text(two_nodes(devices, node, 1));
  };
  EXPECT_ERROR(read(2, "{links: nvlink}"), input_error,
               "c.yaml:5: node.links: 'nvlink': expected one of: nvswitch, full-mesh, pcie, "
               "nvlink-pairs, graph, none; did you mean nvlink-pairs?");
  EXPECT_ERROR(read(2, "{links: none}"), input_error,
               "c.yaml:5: node.links: 'none': expected links that join the devices of a node");
  EXPECT_ERROR(read(2, "{links: nvswitch}"), input_error, "c.yaml:5: node.bandwidth: missing");
  EXPECT_ERROR(
      read(2, "{links: nvswitch, bandwidth: 3}"), input_error,
      "c.yaml:5: node.bandwidth: '3': expected a bandwidth with its unit, such as '400 Gb/s' "
      "or '50 GB/s'");
  EXPECT_ERROR(read(2, "{links: nvswitch, bandwidth: 3 GB/s, speed: 1}"), input_error,
               "c.yaml:5: node.speed: unknown key; expected one of: links, bandwidth, latency");
  EXPECT_ERROR(read(2, "{links: full-mesh, speed: 1}"), input_error,
               "c.yaml:5: node.speed: unknown key; expected one of: links, bandwidth, latency");
  EXPECT_ERROR(read(1, "{links: none, speed: 1}"), input_error,
               "c.yaml:5: node.speed: unknown key; expected one of: links");
  EXPECT_ERROR(read(2, "{links: pcie, speed: 1}"), input_error,
               "c.yaml:5: node.speed: unknown key; expected one of: links, bandwidth, latency, "
               "devices_per_switch, uplink_bandwidth, sockets, socket_bandwidth, socket_latency, "
               "peer_access, host_bandwidth");
  EXPECT_ERROR(
      read(2, "{links: pcie, bandwidth: 1 GB/s, devices_per_switch: 1, peer_access: some}"),
      input_error, "c.yaml:5: node.peer_access: 'some': expected one of: all, switch, none");
  EXPECT_ERROR(read(2, "{links: pcie, bandwidth: 1 GB/s, devices_per_switch: 3}"), input_error,
               "c.yaml:5: node.devices_per_switch: '3': expected a whole number from 1 to 2");
  EXPECT_ERROR(read(2, "{links: pcie, bandwidth: 1 GB/s, devices_per_switch: 2, sockets: 2}"),
               input_error, "c.yaml:5: node.sockets: '2': expected a whole number from 1 to 1");
  EXPECT_ERROR(read(2, "{links: pcie, bandwidth: 1 GB/s, devices_per_switch: 1, sockets: 2}"),
               input_error, "c.yaml:5: node.socket_bandwidth: missing");
  EXPECT_ERROR(read(2, "{links: nvlink-pairs, bandwidth: 1 GB/s}"), input_error,
               "c.yaml:5: node.pcie: missing");
  EXPECT_ERROR(
      read(2, "{links: nvlink-pairs, speed: 1}"), input_error,
      "c.yaml:5: node.speed: unknown key; expected one of: links, bandwidth, latency, pcie");
  EXPECT_ERROR(read(2, "{links: nvlink-pairs, pcie: {links: none}}"), input_error,
               "c.yaml:5: node.pcie.links: unknown key; expected one of: bandwidth, latency, "
               "devices_per_switch, uplink_bandwidth, sockets, socket_bandwidth, socket_latency, "
               "peer_access, host_bandwidth");
}

TEST(node_graph, devices_use_the_nearest_nic) {
  // Two GPUs on switch p, one on q; NIC 0 on q, NIC 1 on p, NIC 2 beyond both.
  const auto c = read_text(two_nodes(
      3,
      "{links: graph, graph: {vertices: [{name: a, kind: device}, {name: b, kind: device}, "
      "{name: c, kind: device}, {name: x, kind: nic}, {name: y, kind: nic}, {name: z, kind: nic}, "
      "{name: p, kind: switch}, {name: q, kind: switch}], links: ["
      "{from: a, to: p, bandwidth: 30 GB/s, latency: 1 us, kind: pcie}, "
      "{from: b, to: p, bandwidth: 30 GB/s, latency: 1 us, kind: pcie}, "
      "{from: c, to: q, bandwidth: 30 GB/s, latency: 1 us, kind: pcie}, "
      "{from: x, to: q, bandwidth: 20 GB/s, latency: 1 us, kind: pcie}, "
      "{from: y, to: p, bandwidth: 20 GB/s, latency: 1 us, kind: pcie}, "
      "{from: z, to: q, bandwidth: 20 GB/s, latency: 9 us, kind: pcie}, "
      "{from: p, to: q, bandwidth: 40 GB/s, latency: 1 us, kind: pcie}, "
      "{from: a, to: b, bandwidth: 100 GB/s, latency: 1 us, kind: nvlink}]}}",
      3));
  const auto& net = c.network;
  EXPECT_EQ(net.links().size(), 2u * (2 * 8 + 3 * 2));
  EXPECT_THAT(stops(net, 0, 1), ElementsAre("node0.gpu0", "node0.gpu1"));
  EXPECT_THAT(stops(net, 3, 5), ElementsAre("node1.gpu0", "node1.p", "node1.q", "node1.gpu2"));
  EXPECT_THAT(stops(net, 0, 5), ElementsAre("node0.gpu0", "node0.p", "node0.nic1", "switch0",
                                            "node1.nic0", "node1.q", "node1.gpu2"));
  EXPECT_THAT(rates(net, 0, 5), ElementsAre(30, 20, 10, 10, 20, 30));
}

TEST(node_graph, equally_near_nics_share_the_devices) {
  const auto c = read_text(two_nodes(
      2,
      "{links: graph, graph: {vertices: [{name: a, kind: device}, {name: b, kind: device}, "
      "{name: x, kind: nic}, {name: y, kind: nic}, {name: p, kind: switch}], links: ["
      "{from: a, to: p, bandwidth: 30 GB/s}, {from: b, to: p, bandwidth: 30 GB/s}, "
      "{from: x, to: p, bandwidth: 20 GB/s}, {from: y, to: p, bandwidth: 20 GB/s}]}}",
      2));
  EXPECT_EQ(stops(c.network, 0, 2)[2], "node0.nic0");
  EXPECT_EQ(stops(c.network, 1, 2)[2], "node0.nic1");
}

TEST(node_graph, refuses_a_wrong_count_and_separate_parts) {
  EXPECT_ERROR(
      read_text(two_nodes(2, "{links: graph, graph: {vertices: [{name: a, kind: device}]}}", 1)),
      input_error,
      "c.yaml:5: node.graph.vertices: '[...]': expected 2 devices as the cluster says, found 1");
  EXPECT_ERROR(read_text(two_nodes(1,
                                   "{links: graph, graph: {vertices: [{name: a, kind: device}, "
                                   "{name: x, kind: nic}]}}",
                                   1)),
               input_error, "c.yaml:5: node.graph.links: '': no path from a to x");
}

}  // namespace node_kind_test
}  // namespace attnsim
