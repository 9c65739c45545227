#include "formats/topology.hpp"

#include <gmock/gmock.h>

namespace attnsim::formats {
namespace topology_test {

using testing::ElementsAre;

topology two_nodes() {
  topology t;
  const auto a = t.add(part_kind::device, "a", 0), s = t.add(part_kind::switch_, "s");
  const auto b = t.add(part_kind::device, "b", 1), x = t.add(part_kind::nic, "x", 1);
  t.join(a, s, bandwidth(1), {}, link_kind::network);
  t.join(b, x, bandwidth(2), {}, link_kind::pcie);
  t.join(x, s, bandwidth(3), {}, link_kind::network);
  return t;
}

TEST(topology, finds_parts_by_kind_and_cables_by_part) {
  const auto t = two_nodes();
  EXPECT_THAT(t.all(part_kind::device), ElementsAre(0, 2));
  EXPECT_EQ(t.count(part_kind::host), 0u);
  EXPECT_EQ(t.nodes(), 2);
  EXPECT_THAT(cables_of_parts(t)[1], ElementsAre(0, 2));
}

TEST(topology, a_node_has_the_cables_among_its_parts) {
  const auto b = two_nodes().node(1);
  ASSERT_EQ(b.parts.size(), 2u);
  EXPECT_EQ(b.parts[0].name, "b");
  EXPECT_EQ(b.parts[0].node, 0);
  ASSERT_EQ(b.cables.size(), 1u);
  EXPECT_EQ(b.cables[0].rate, bandwidth(2));
  EXPECT_EQ(b.cables[0].to, 1u);
}

TEST(topology, limits_its_size) {
  topology t;
  t.parts.resize(most_parts);
  EXPECT_THROW(t.add(part_kind::nic, "x"), std::length_error);
  t.cables.resize(most_cables);
  EXPECT_THROW(t.join(0, 1, {}, {}, link_kind::pcie), std::length_error);
}

TEST(notes, are_added_once) {
  notes n{.read = {"a"}, .assumed = {}, .missing = {}, .warnings = {"w"}};
  n.add({.read = {"b"}, .assumed = {}, .missing = {"m"}, .warnings = {"w"}});
  EXPECT_THAT(n.read, ElementsAre("a", "b"));
  EXPECT_THAT(n.missing, ElementsAre("m"));
  EXPECT_THAT(n.warnings, ElementsAre("w"));
}

TEST(counted, knows_plurals) {
  EXPECT_EQ(counted(1, "NIC"), "1 NIC");
  EXPECT_EQ(counted(0, "NIC"), "0 NICs");
  EXPECT_EQ(counted(2, "PCIe switch"), "2 PCIe switches");
}

}  // namespace topology_test
}  // namespace attnsim::formats
