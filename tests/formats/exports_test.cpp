#include "formats/exports.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "formats/cluster_file.hpp"
#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace exports_test {

using testing::HasSubstr;

cluster shipped(const std::string& name, int nodes) {
  return read_cluster(name, {.nodes = nodes});
}

/// What an exported cluster becomes when it is read again.
cluster read_back(const std::string& text) {
  const auto file = write_cluster_file(combine({read_text(text)}, {}), {.name = "c"});
  return read_cluster(config_node::parse_text(file.text, "c"));
}

/// Links as "a->b rate latency kind", sorted.
std::vector<std::string> links_of(const network& net) {
  std::vector<std::string> links;
  for (link_id i = 0; i < net.links().size(); ++i) {
    const auto& l = net.links()[i];
    links.push_back(net.name(i, "->") + " " + to_string(l.capacity) + " " + to_string(l.latency) +
                    " " + std::string(name_of(l.kind)));
  }
  std::sort(links.begin(), links.end());
  return links;
}

std::vector<int> nodes_of_devices(const network& net) {
  std::vector<int> nodes;
  for (int d = 0; d < net.devices(); ++d) nodes.push_back(net.node_of(d));
  return nodes;
}

class round_trip : public testing::TestWithParam<const char*> {};

TEST_P(round_trip, keeps_devices_and_links) {
  for (const auto& write : {write_graphml, write_simgrid}) {
    const auto before = shipped(GetParam(), 2);
    const auto after = read_back(write(before));
    EXPECT_EQ(links_of(after.network), links_of(before.network));
    EXPECT_EQ(nodes_of_devices(after.network), nodes_of_devices(before.network));
  }
}

INSTANTIATE_TEST_SUITE_P(clusters, round_trip,
                         testing::Values("nd-h100-v5", "nc-a100-v4", "pcie-8", "p5"));

TEST(write_astra_sim, a_dimension_inside_and_one_between) {
  EXPECT_EQ(write_astra_sim(shipped("nd-h100-v5", 4)),
            "# nd-h100-v5\ntopology: [ Switch, Switch ]\nnpus_count: [ 8, 4 ]\n"
            "bandwidth: [ 450, 50 ]  # GB/s\nlatency: [ 500, 600 ]  # ns\n");
}

TEST(write_astra_sim, round_trip) {
  const std::string text =
      "# c\ntopology: [ FullyConnected, Switch ]\nnpus_count: [ 4, 3 ]\n"
      "bandwidth: [ 150, 12.5 ]  # GB/s\nlatency: [ 700, 2500 ]  # ns\n";
  EXPECT_EQ(write_astra_sim(read_back(text)), text);
}

TEST(write_astra_sim, refuses_what_has_more_than_one_rate) {
  EXPECT_ERROR(write_astra_sim(shipped("nc-a100-v4", 1)), input_error,
               "nc-a100-v4: an ASTRA-sim file has one rate a dimension, but node0.gpu0 reaches "
               "node0.gpu1 at 300.0 GB/s and node0.gpu2 at 31.50 GB/s");
}

TEST(write_dot, nodes_are_clusters) {
  const auto text = write_dot(shipped("p5", 2));
  EXPECT_THAT(text, HasSubstr("digraph \"p5\" {\n"));
  EXPECT_THAT(text, HasSubstr("  subgraph cluster_1 {\n    label=\"node1\"\n"
                              "    \"node1.gpu0\" [shape=box]\n"));
  EXPECT_THAT(text, HasSubstr("  \"node0.nic0\" -> \"switch0\" [label=\"50.00 GB/s\"]\n"));
}

TEST(find_export, lists_the_names) {
  EXPECT_EQ(find_export("dot").write, write_dot);
  EXPECT_ERROR(find_export("visio"), input_error,
               "--to: 'visio': expected one of: graphml, simgrid, dot, astra-sim");
}

}  // namespace exports_test
}  // namespace attnsim::formats
