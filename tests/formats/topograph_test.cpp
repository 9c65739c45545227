#include <gmock/gmock.h>

#include "formats/combine.hpp"
#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace topograph_test {

using testing::ElementsAre;

TEST(topograph, reads_switches_blocks_and_domains) {
  const auto t = read_topology(read_source("tests/formats/data/topograph/two-domains.yaml"), {});
  EXPECT_EQ(counts_of(t), (counts{0, 0, 3, 4, 4 + 2}));
  EXPECT_THAT(neighbours(t, "leaf-1"), ElementsAre("core", "node11", "node12"));
  std::vector<int> domains;
  for (const auto h : t.all(part_kind::host)) domains.push_back(t.parts[h].node);
  EXPECT_THAT(domains, ElementsAre(0, 0, 1, 1));
}

TEST(topograph, refuses_bad_files) {
  EXPECT_ERROR(read_text("blocks: []\nracks: []\n"), input_error,
               "f:2: racks: unknown key; expected one of: switches, blocks");
  EXPECT_ERROR(read_text("blocks:\n- {nodes: [a]}\n"), input_error,
               "f:2: blocks[0].switch: missing");
  EXPECT_ERROR(read_text("blocks:\n- {switch: s, nodes: [\"a[1\"]}\n"), input_error,
               "f:2: blocks[0].nodes[0]: 'a[1': expected a host list, such as node[01-08,10]");
  EXPECT_ERROR(read_text("blocks: [{switch: s, nodes: [a]}]\nswitches: {s: {switches: [s]}}\n"),
               input_error,
               "f:2: switches.s.switches[0]: 's': expected no switch below itself; s is above s");
  EXPECT_ERROR(
      read_text("blocks:\n- {switch: s, nodes: [a]}\n- {switch: t, nodes: [a]}\n"), input_error,
      "f:3: blocks[1].nodes[0]: 'a': expected each host below one switch, once; a is below s");
}

TEST(topograph_models, medium) {
  READ_SHARED_OR_SKIP(t, "slurm_topology/topograph_model_medium.yaml", {});
  EXPECT_EQ(counts_of(t), (counts{0, 0, 4 + 2 + 1, 8, 8 + 4 + 2}));
  const auto m = combine({t}, {});
  EXPECT_EQ(m.nodes, 4);  // NVLink domains of two hosts
  EXPECT_EQ(counts_of(*m.fabric), (counts{0, 8, 7, 0, 8 + 4 + 2}));
}

TEST(topograph_models, nvl72) {
  READ_SHARED_OR_SKIP(t, "slurm_topology/topograph_model_nvl72.yaml", {});
  EXPECT_EQ(counts_of(t), (counts{0, 0, 4 + 2 + 1, 4 * 18, 72 + 4 + 2}));
  const auto m = combine({t}, {.devices_per_host = 4});
  EXPECT_EQ(m.nodes, 4);
  EXPECT_EQ(m.inside.count(part_kind::device), 72u);
}

}  // namespace topograph_test
}  // namespace attnsim::formats
