#include "model/cluster/cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/expect_error.hpp"
#include "tests/model/read_text.hpp"

namespace attnsim {
namespace cluster_test {

using testing::ElementsAre;
using testing::IsSupersetOf;

const std::string head = "name: c\ndevice: ideal\nnodes: 4\ndevices_per_node: 2\n";
const std::string node = "node: {links: nvswitch, bandwidth: 100 GB/s}\n";
const std::string nics = "nics: {per_node: 2, bandwidth: 10 GB/s}\n";
const std::string fabric = "fabric: {kind: star}\n";
const std::string whole = head + node + nics + fabric;

cluster read_with(const std::string& text, const cluster_overrides& overrides) {
  return read_cluster(config_node::parse_text(text, "c.yaml"), overrides);
}

TEST(read_cluster, nodes_of_devices) {
  const auto c = read_text(whole);
  EXPECT_EQ(c.name, "c");
  EXPECT_EQ(c.device.name, "ideal");
  EXPECT_EQ(c.nodes, 4);
  EXPECT_EQ(c.devices_per_node, 2);
  EXPECT_EQ(c.devices(), 8);
  EXPECT_EQ(c.network.node_of(5), 2);
  EXPECT_EQ(c.device_speed, std::vector<double>(8, 1.0));
}

TEST(read_cluster, explicit_graph) {
  const std::string graph =
      "name: c\ndevice: ideal\ngraph:\n"
      "  vertices: [{name: a, kind: device, node: 0}, {name: b, kind: device, node: 2}]\n"
      "  links: [{from: a, to: b, bandwidth: 1 GB/s}]\n";
  const auto c = read_text(graph);
  EXPECT_EQ(c.devices(), 2);
  EXPECT_EQ(c.nodes, 3);
  EXPECT_EQ(c.devices_per_node, 0);
  EXPECT_THAT(stops(c.network, 1, 0), ElementsAre("b", "a"));
  EXPECT_ERROR(read_with(graph, {.nodes = 4}), input_error,
               "nodes: '4': expected a cluster with a fabric, this one is an explicit graph");
  EXPECT_ERROR(read_text(graph + "nodes: 2\n"), input_error,
               "c.yaml:6: nodes: unknown key; expected one of: name, source, device, host, graph, "
               "slow_devices, slow_links, assumed");
}

TEST(read_cluster, stragglers_and_degraded_cables) {
  const auto c = read_text(whole +
                           "slow_devices: {3: 0.5, 0: 0.75}\n"
                           "slow_links: {node1.nic0->switch0: 0.25}\n");
  EXPECT_THAT(c.device_speed, ElementsAre(0.75, 1, 1, 0.5, 1, 1, 1, 1));
  // Device 2 is the first of node 1: its way out is slow, the way in is not.
  const auto& links = c.network.links();
  EXPECT_EQ(links[route_of(c.network, 2, 0)[1]].capacity, bandwidth(2.5e9));
  EXPECT_EQ(links[route_of(c.network, 0, 2)[2]].capacity, bandwidth(10e9));
}

TEST(read_cluster, refuses_bad_stragglers_and_cables) {
  EXPECT_ERROR(read_text(whole + "slow_devices: {8: 0.5}\n"), input_error,
               "c.yaml:8: slow_devices.8: '0.5': expected a device number from 0 to 7");
  EXPECT_ERROR(read_text(whole + "slow_devices: {gpu0: 0.5}\n"), input_error,
               "c.yaml:8: slow_devices.gpu0: '0.5': expected a device number from 0 to 7");
  EXPECT_ERROR(read_text(whole + "slow_devices: {1: 1.5}\n"), input_error,
               "c.yaml:8: slow_devices.1: '1.5': expected a share above 0 and at most 1");
  EXPECT_ERROR(
      read_text(whole + "slow_links: {node1.nic0->leaf0: 0.5}\n"), input_error,
      "c.yaml:8: slow_links.node1.nic0->leaf0: '0.5': expected the name of a link, such as "
      "node0.gpu0->node0.nvswitch0");
  EXPECT_ERROR(
      read_text(whole + "slow_links: {node1.nic0->switch0: 0}\n"), input_error,
      "c.yaml:8: slow_links.node1.nic0->switch0: '0': expected a share above 0 and at most 1");
}

TEST(read_cluster, overrides) {
  EXPECT_EQ(read_with(whole, {.nodes = 16}).devices(), 32);
  EXPECT_EQ(read_with(whole, {.device = "h100-sxm5"}).device.name, "h100-sxm5");
  const auto c =
      read_with(whole, {.set = {{"nics.bandwidth", "40 GB/s"}, {"device.kernel_launch", "3 us"}}});
  EXPECT_EQ(c.network.links()[route_of(c.network, 0, 2)[1]].capacity, bandwidth(40e9));
  EXPECT_EQ(c.device.kernel_launch, parse<seconds>("3 us"));
  EXPECT_ERROR(
      read_with(whole, {.set = {{"nics.speed", "1"}}}), input_error,
      "set: nics.speed: unknown key; expected one of: per_node, bandwidth, latency, attach, "
      "pcie_bandwidth");
  EXPECT_ERROR(read_with(whole, {.set = {{"device.multiprocessors", "0"}}}), input_error,
               "set: device.multiprocessors: '0': expected a whole number from 1 to 1000000");
  EXPECT_ERROR(read_with(whole, {.device = "no-such"}), input_error,
               fmt::format("device: 'no-such': expected a file or one of: {}",
                           fmt::join(shipped_devices(), ", ")));
  EXPECT_EQ(
      read_with(whole, {.set = {{"fabric", "{kind: torus, dims: [2, 2]}"}}}).network.links().size(),
      read_text(whole).network.links().size() + 2 * 4);
}

TEST(read_cluster, device_may_be_written_in_the_file_or_in_another) {
  const std::string profile =
      "{name: mine, peak: {half: 2 TFLOP/s, fp32: 1 TFLOP/s}, memory: {capacity: 1 GB, bandwidth: "
      "1 "
      "GB/s}, multiprocessors: 3}\n";
  const auto text = "name: c\ndevice: " + profile + "nodes: 1\ndevices_per_node: 1\n";
  EXPECT_EQ(read_text(text).device.multiprocessors, 3);
  EXPECT_EQ(read_with(text, {.set = {{"device.multiprocessors", "5"}}}).device.multiprocessors, 5);
  const auto path = std::filesystem::temp_directory_path() / "attnsim_cluster_test_device.yaml";
  std::ofstream(path) << profile;
  EXPECT_EQ(read_with(whole, {.device = path.string()}).device.name, "mine");
  std::filesystem::remove(path);
}

TEST(read_cluster, one_device_needs_no_network) {
  const auto c = read_text("name: c\ndevice: ideal\nnodes: 1\ndevices_per_node: 1\n");
  EXPECT_EQ(c.devices(), 1);
  EXPECT_TRUE(c.network.links().empty());
}

TEST(read_cluster, refuses_bad_values) {
  EXPECT_ERROR(read_text("device: ideal\n"), input_error, "c.yaml:1: name: missing");
  EXPECT_ERROR(read_text(whole + "speed: 1\n"), input_error,
               "c.yaml:8: speed: unknown key; expected one of: name, source, device, host, nodes, "
               "devices_per_node, node, nics, fabric, slow_devices, slow_links, assumed");
  EXPECT_ERROR(read_text("name: c\ndevice: ideal\nnodes: 0\ndevices_per_node: 2\n"), input_error,
               "c.yaml:3: nodes: '0': expected a whole number from 1 to 524288");
  EXPECT_ERROR(read_text("name: c\ndevice: ideal\nnodes: 1\ndevices_per_node: 5000\n"), input_error,
               "c.yaml:4: devices_per_node: '5000': expected a whole number from 1 to 4096");
  EXPECT_ERROR(read_with(whole, {.nodes = -1}), input_error,
               "nodes: '-1': expected a whole number from 1 to 524288");
  EXPECT_ERROR(read_text(head + node + nics), input_error, "c.yaml:1: fabric: missing");
  EXPECT_ERROR(read_text(head + node + fabric), input_error, "c.yaml:1: nics: missing");
  EXPECT_ERROR(read_text(head + nics + fabric), input_error, "c.yaml:1: node: missing");
  EXPECT_ERROR(read_text("name: c\nnodes: 1\ndevices_per_node: 1\n"), input_error,
               "c.yaml:1: device: missing");
}

TEST(read_cluster, refuses_bad_nics) {
  const auto read = [](const std::string& keys) {
    read_text(head + node + "nics: {" + keys + "}\n" + fabric);
  };
  EXPECT_ERROR(read("per_node: 3, bandwidth: 1 GB/s"), input_error,
               "c.yaml:6: nics.per_node: '3': expected a whole number from 1 to 2");
  EXPECT_ERROR(read("per_node: 2"), input_error, "c.yaml:6: nics.bandwidth: missing");
  EXPECT_ERROR(read("per_node: 1, bandwidth: 1 GB/s, attach: one-per-device"), input_error,
               "c.yaml:6: nics.attach: 'one-per-device': expected shared: 1 NICs serve 2 devices");
  EXPECT_ERROR(read("per_node: 2, bandwidth: 1 GB/s, attach: none"), input_error,
               "c.yaml:6: nics.attach: 'none': expected one of: one-per-device, shared");
  EXPECT_ERROR(read("per_node: 2, bandwidth: 1 GB/s, rails: 2"), input_error,
               "c.yaml:6: nics.rails: unknown key; expected one of: per_node, bandwidth, latency, "
               "attach, pcie_bandwidth");
}

TEST(read_cluster, unknown_names_list_the_shipped_ones) {
  EXPECT_ERROR(read_cluster("no-such"), input_error,
               fmt::format("cluster: 'no-such': expected a file or one of: {}",
                           fmt::join(shipped_clusters(), ", ")));
  EXPECT_ERROR(read_text("name: c\ndevice: no-such\nnodes: 1\ndevices_per_node: 1\n"), input_error,
               fmt::format("c.yaml:2: device: 'no-such': expected a file or one of: {}",
                           fmt::join(shipped_devices(), ", ")));
}

TEST(read_cluster, pcie_bandwidth_limits_the_way_to_the_nic) {
  const auto c = read_text(
      head + node + "nics: {per_node: 2, bandwidth: 10 GB/s, pcie_bandwidth: 8 GB/s}\n" + fabric);
  EXPECT_EQ(c.network.links()[route_of(c.network, 0, 2)[0]].capacity, bandwidth(8e9));
  EXPECT_EQ(c.network.links()[route_of(c.network, 0, 2)[1]].capacity, bandwidth(10e9));
}

TEST(shipped_clusters, all_are_there) {
  EXPECT_THAT(shipped_clusters(),
              IsSupersetOf({"a3-mega",     "dgx-b200",   "dgx-h100",    "dgx-h200",   "gb200-nvl72",
                            "gb300-nvl72", "hgx-h20",    "mi300x-8",    "nc-a100-v4", "nc-h100-v5",
                            "nd-a100-v4",  "nd-h100-v5", "ndm-a100-v4", "p4d",        "p4de",
                            "p5",          "p5en",       "p6-b200",     "pcie-8",     "star"}));
}

TEST(shipped_clusters, load_at_any_number_of_nodes) {
  for (const auto& name : shipped_clusters()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(read_cluster(name).name, name);
    for (const int nodes : {1, 2, 3, 17, 64}) {
      const auto c = read_cluster(name, {.nodes = nodes});
      ASSERT_EQ(c.devices(), nodes * c.devices_per_node);
      const int last = c.devices() - 1;
      EXPECT_EQ(stops(c.network, 0, last).back(), c.network.name(c.network.device(last)));
    }
  }
}

TEST(cluster, what_its_file_assumes_counts_until_it_is_set) {
  const std::string text =
      "name: c\ndevice: ideal\nnodes: 1\ndevices_per_node: 1\n"
      "assumed: {device: 18 links fit two cards, nodes: a guess}\n";
  const auto read = [&](const cluster_overrides& overrides) {
    return read_cluster(config_node::parse_text(text, "c.yaml"), overrides).assumed;
  };
  EXPECT_THAT(read({}), testing::ElementsAre("device: 18 links fit two cards", "nodes: a guess"));
  EXPECT_THAT(read({.device = "l20"}), testing::ElementsAre("nodes: a guess"));
  EXPECT_THAT(read({.device = "l20", .set = {{"nodes", "1"}}}), testing::IsEmpty());
  EXPECT_ERROR(
      read_cluster(config_node::parse_text(
          "name: c\ndevice: ideal\nnodes: 1\ndevices_per_node: 1\nassumed: {nics: x}\n", "c.yaml")),
      input_error,
      "c.yaml:5: assumed.nics: 'x': expected a key of this file and why its value is assumed");
}

}  // namespace cluster_test
}  // namespace attnsim
