#include <gmock/gmock.h>

#include "formats/combine.hpp"
#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace slurm_test {

using testing::ElementsAre;
using testing::SizeIs;

TEST(slurm, reads_a_tree) {
  const auto t = read_topology(read_source("tests/formats/data/slurm/two-levels.conf"), {});
  // Seven hosts; leaf1, leaf2, spine, alone, and one that joins the spine and `alone`.
  EXPECT_EQ(t.what, scope::fabric);
  EXPECT_EQ(counts_of(t), (counts{0, 0, 5, 7, 7 + 2 + 2}));
  EXPECT_THAT(neighbours(t, "leaf2"), ElementsAre("login1", "login3", "node04", "spine"));
  EXPECT_THAT(neighbours(t, "joined"), ElementsAre("alone", "spine"));
}

TEST(slurm, nodes_of_upper_switches_as_scontrol_prints_them_are_those_below) {
  const auto t = read_text(
      "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nswitchname=s1 Level=0 Nodes=n[2-3]\n"
      "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-1]\n");
  EXPECT_EQ(counts_of(t), (counts{0, 0, 3, 4, 4 + 2}));
}

TEST(slurm, blocks_are_nvlink_domains) {
  const auto t = read_topology(read_source("tests/formats/data/slurm/blocks.txt"), {});
  EXPECT_EQ(counts_of(t), (counts{0, 0, 0, 4, 0}));
  EXPECT_EQ(t.parts[1].node, 0);
  EXPECT_EQ(t.parts[2].node, 1);
}

TEST(slurm, refuses_bad_files) {
  EXPECT_ERROR(read_text("SwitchName=a Hosts=b\n"), input_error,
               "f:1: key: 'Hosts=b': expected SwitchName=, Switches=, Nodes= or BlockName=");
  EXPECT_ERROR(read_text("SwitchName=a\n"), input_error, "f:1: expected Nodes= or Switches=");
  EXPECT_ERROR(read_text("SwitchName=a Nodes=b\nNodes=c\n"), input_error,
               "f:2: expected a line that begins with SwitchName= or BlockName=");
  EXPECT_ERROR(read_text("SwitchName=a Nodes=b[1-\n"), input_error,
               "f:1: Nodes: 'b[1-': expected a host list, such as node[01-08,10]");
  EXPECT_ERROR(read_text("SwitchName=a Nodes=b\nSwitchName=a Nodes=c\n"), input_error,
               "f:2: SwitchName: 'a': expected a name that no other switch has");
  EXPECT_ERROR(read_text("SwitchName=a Nodes=b\nSwitchName=c Switches=a,d\n"), input_error,
               "f:2: Switches: 'a,d': expected names of switches of this file; d is none");
  EXPECT_ERROR(read_text("SwitchName=a Nodes=n[1-3],n2\n"), input_error,
               "f:1: Nodes: 'n[1-3],n2': expected each host below one switch, once; n2 is below a");
  EXPECT_ERROR(read_text("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\n"), input_error,
               "f:2: Nodes: 'n1': expected each host below one switch, once; n1 is below a");
  EXPECT_ERROR(
      read_text("SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Switches=a\n"),
      input_error, "f:3: Switches: 'a': expected no switch below itself; a is above c");
  EXPECT_ERROR(read_text("SwitchName=a Switches=a\n"), input_error,
               "f:1: Switches: 'a': expected no switch below itself; a is above a");
  EXPECT_ERROR(read_text("BlockName=a Nodes=n1\nBlockName=b Nodes=n1\n"), input_error,
               "f:2: Nodes: 'n1': expected each host in one NVLink domain, once; n1 is in one");
  EXPECT_ERROR(read_text("SwitchName=a Nodes=b[0-9999999]\n"), input_error,
               "f: describes more than 131072 hosts");
}

TEST(slurm_of_others, three_levels) {
  READ_SHARED_OR_SKIP(t, "slurm_topology/tree_leaf_spine_core_example.conf", {});
  EXPECT_EQ(counts_of(t), (counts{0, 0, 4 + 2 + 1, 32, 32 + 4 + 2}));
  // 8 NICs of 50 GB/s below a leaf, 16 below a spine.
  const auto m = combine({t}, {});
  EXPECT_THAT(rates(*m.fabric, "leaf1", "spine1"), ElementsAre(400));
  EXPECT_THAT(rates(*m.fabric, "spine2", "core"), ElementsAre(800));
}

TEST(slurm_of_others, gb300_blocks) {
  READ_SHARED_OR_SKIP(t, "slurm_topology/block_gb300_scontrol_show_topology.txt", {});
  EXPECT_EQ(counts_of(t), (counts{0, 0, 0, 2 * 18, 0}));
  const auto m = combine({t}, {.devices_per_host = 4});
  EXPECT_EQ(m.nodes, 2);
  EXPECT_FALSE(m.fabric);
  // 72 devices, 18 NICs, the NVSwitch; a cable from each device to both.
  EXPECT_EQ(counts_of(m.inside), (counts{72, 18, 1, 0, 72 + 72}));
  EXPECT_THAT(rates(m.inside, link_kind::nvlink), SizeIs(72));
}

}  // namespace slurm_test
}  // namespace attnsim::formats
