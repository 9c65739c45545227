#include "formats/from_cluster.hpp"

#include <gmock/gmock.h>

#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace from_cluster_test {

using testing::ElementsAre;

cluster read_yaml(const std::string& text) {
  return read_cluster(config_node::parse_text(text, "c"));
}

TEST(from_cluster, pairs_links_into_cables) {
  const auto t = from_cluster(read_yaml(
      "name: c\ndevice: ideal\nnodes: 2\ndevices_per_node: 2\n"
      "node: {links: nvswitch, bandwidth: 100 GB/s}\nnics: {per_node: 2, bandwidth: 25 GB/s}\n"
      "fabric: {kind: star}\n"));
  // A node: 2 + 2 cables inside; 4 to the star.
  EXPECT_EQ(counts_of(t), (counts{4, 4, 2 + 1, 0, 2 * 4 + 4}));
  EXPECT_EQ(t.device, "ideal");
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 25e9);
  EXPECT_THAT(rates(t, "node1.gpu0", "node1.nvswitch0"), ElementsAre(100));
  const auto node = t.node(1);
  EXPECT_EQ(counts_of(node), (counts{2, 2, 1, 0, 4}));
  EXPECT_EQ(node.parts[0].name, "gpu0");
}

TEST(from_cluster, links_of_different_rates_stay_apart) {
  const auto t = from_cluster(
      read_yaml("name: c\ndevice: ideal\ngraph: {vertices: [{name: a, kind: device}, {name: b, "
                "kind: device}], "
                "links: [{from: a, to: b, bandwidth: 1 GB/s}]}\nslow_links: {a->b: 0.5}\n"));
  ASSERT_EQ(t.cables.size(), 2u);
  EXPECT_FALSE(t.cables[0].duplex);
  EXPECT_DOUBLE_EQ(t.cables[0].rate.value(), 0.5e9);
}

}  // namespace from_cluster_test
}  // namespace attnsim::formats
