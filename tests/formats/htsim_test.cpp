#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace htsim_test {

using testing::ElementsAre;

TEST(htsim, reads_tiers) {
  const auto t = read_topology(read_source("tests/formats/data/htsim/two-tiers.topo"), {});
  // Two leaves of three hosts, four uplinks each in bundles of two: two spines.
  EXPECT_EQ(counts_of(t), (counts{6, 0, 2 + 2, 0, 6 + 2 * 4}));
  EXPECT_THAT(rates(t, "host0", "level1.0"), ElementsAre(12.5));
  EXPECT_THAT(rates(t, "level1.1", "level2.0"), ElementsAre(25, 25));
}

TEST(htsim, refuses_bad_files) {
  EXPECT_ERROR(read_text("Nodes 4\nTiers 1\nTier 1\n"), input_error, "f:3: Tier: '1': expected 0");
  EXPECT_ERROR(read_text("Nodes many\nTiers 1\n"), input_error,
               "f:1: Nodes: 'many': expected a whole number from 0 to 131072");
  EXPECT_ERROR(read_text("Nodes 4\nTiers 1\n"), input_error, "f:2: expected at least one Tier");
  EXPECT_ERROR(read_text("Nodes 4\nTiers 1\nTier 0\n"), input_error,
               "f:3: Tier: Radix_Down: missing");
  EXPECT_ERROR(read_text("Nodes 4\nTiers 1\nTier 0\nRadix_Down 3\nDownlink_speed_Gbps 1\n"),
               input_error, "f:1: Nodes: '4': expected 3, as the tiers' ports make");
  EXPECT_ERROR(read_text("Nodes 4\nTiers 1\nTier 0\nRadix_Down 3\nBundle 2\n"), input_error,
               "f:3: Tier: Bundle: expected a divisor of the ports it joins");
}

TEST(htsim_examples, eight_nodes) {
  READ_SHARED_OR_SKIP(t, "htsim/8nodes.topo", {});
  // Four leaves and four switches above in two pods, four cores. Cables: 8 to hosts, 4 x 2 of
  // 200 Gb/s, 4 x 4 of 100 Gb/s.
  EXPECT_EQ(counts_of(t), (counts{8, 0, 4 + 4 + 4, 0, 8 + 8 + 16}));
  EXPECT_THAT(rates(t, "level1.0", "level2.1"), ElementsAre(25));
  EXPECT_THAT(rates(t, "level2.0", "level3.0"), ElementsAre(12.5, 12.5));
}

}  // namespace htsim_test
}  // namespace attnsim::formats
