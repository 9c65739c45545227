#include <gmock/gmock.h>

#include "formats/combine.hpp"
#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace slurm_yaml_test {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(slurm_yaml, reads_a_tree) {
  const auto t = read_topology(read_source("tests/formats/data/slurm-yaml/tree.yaml"), {});
  EXPECT_EQ(t.what, scope::fabric);
  EXPECT_EQ(counts_of(t), (counts{0, 0, 3, 8, 8 + 2}));
  EXPECT_THAT(neighbours(t, "leaf2"), ElementsAre("node05", "node06", "node07", "node08", "spine"));
  EXPECT_THAT(t.said.read,
              ElementsAre("tree.yaml: topology topo-switch: 8 hosts, 3 switches, 0 blocks"));
  EXPECT_EQ(combine({t}, {}).nodes, 8);
}

TEST(slurm_yaml, blocks_are_nvlink_domains) {
  const auto t = read_topology(read_source("tests/formats/data/slurm-yaml/block.yaml"), {});
  EXPECT_EQ(counts_of(t), (counts{0, 0, 0, 36, 0}));
  EXPECT_EQ(t.parts[17].node, 0);
  EXPECT_EQ(t.parts[18].node, 1);
  EXPECT_EQ(combine({t}, {.devices_per_host = 4}).nodes, 2);
}

TEST(slurm_yaml, of_several_topologies_the_default_counts) {
  const std::string a = "- topology: a\n  tree: {switches: [{switch: s, nodes: 'n[1-2]'}]}\n";
  const std::string b =
      "- topology: b\n  cluster_default: true\n  tree: {switches: [{switch: s, nodes: "
      "'n[1-3]'}]}\n";
  const auto t = read_text("# ours\n" + a + b);
  EXPECT_EQ(t.count(part_kind::host), 3u);
  EXPECT_THAT(t.said.missing, ElementsAre("f: topology a: b is the cluster's default"));
  EXPECT_EQ(read_text(a).count(part_kind::host), 2u);
}

TEST(slurm_yaml, refuses_bad_files) {
  const auto tree = [](const std::string& switches) {
    return read_text("- topology: t\n  tree:\n    switches:\n" + switches);
  };
  EXPECT_ERROR(read_text("- topology: t\n  flat: true\n"), input_error,
               "f:1: [0]: '{...}': expected tree or block: flat tells nothing of switches");
  EXPECT_ERROR(
      read_text("- topology: t\n  mesh: true\n"), input_error,
      "f:2: [0].mesh: unknown key; expected one of: topology, cluster_default, tree, block, flat");
  EXPECT_ERROR(tree("    - {switch: s}\n"), input_error,
               "f:4: [0].tree.switches[0]: '{...}': expected children or nodes");
  EXPECT_ERROR(
      tree("    - {switch: s, nodes: 'a['}\n"), input_error,
      "f:4: [0].tree.switches[0].nodes: 'a[': expected a host list, such as node[01-08,10]");
  EXPECT_ERROR(tree("    - {switch: s, nodes: a}\n    - {switch: s, nodes: b}\n"), input_error,
               "f:5: [0].tree.switches[1].switch: 's': expected a name that no other switch has");
  EXPECT_ERROR(tree("    - {switch: s, children: t}\n"), input_error,
               "f:4: [0].tree.switches[0].children: 't': expected names of switches of this "
               "topology; t is none");
  EXPECT_ERROR(tree("    - {switch: s, nodes: 'a,b'}\n    - {switch: t, nodes: b}\n"), input_error,
               "f:5: [0].tree.switches[1].nodes: 'b': expected each host below one switch, once; b "
               "is below s");
  EXPECT_ERROR(
      tree("    - {switch: s, children: t}\n    - {switch: t, children: s}\n"), input_error,
      "f:5: [0].tree.switches[1].children: 's': expected no switch below itself; s is above t");
  EXPECT_ERROR(read_text("- topology: t\n  block:\n    blocks:\n    - {block: a, nodes: x}\n    - "
                         "{block: b, nodes: x}\n"),
               input_error,
               "f:5: [0].block.blocks[1].nodes: 'x': expected each host in one NVLink domain, "
               "once; x is in one");
}

}  // namespace slurm_yaml_test
}  // namespace attnsim::formats
