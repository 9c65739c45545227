#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace ibnetdiscover_test {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ibnetdiscover, reads_switches_hosts_and_each_cable_once) {
  const auto t =
      read_topology(read_source("tests/formats/data/ibnetdiscover/two-switches.out"), {});
  // node-0001 has two adapters; the aggregation node is no host. Two cables between the switches.
  EXPECT_EQ(counts_of(t), (counts{0, 0, 2, 2, 3 + 2}));
  EXPECT_THAT(rates(t, "node-0001", "S-1"), ElementsAre(50, 25));  // 4xNDR, 4xHDR
  EXPECT_THAT(rates(t, "S-1", "S-2"), ElementsAre(50, 50));
  EXPECT_THAT(t.said.missing, Contains(HasSubstr("the hosts of 1 adapter")));
}

TEST(ibnetdiscover, refuses_bad_files) {
  const std::string leaf = "Switch 2 \"S\" # \"leaf\"\n";
  EXPECT_ERROR(read_text(leaf + "[1] \"H\"[1]\n"), input_error,
               "f:2: port: 'H': expected the name of a record of this file");
  EXPECT_ERROR(read_text(leaf + "[x] \"H\"[1]\n"), input_error,
               "f:2: port: '[x': expected [0] to [1024]");
  EXPECT_ERROR(read_text(leaf + "[1] \"H\"\n"), input_error,
               "f:2: port: '': expected [0] to [1024]");
  EXPECT_ERROR(read_text(leaf + "[1] H[1]\n"), input_error,
               "f:2: expected the other end's name in quotes");
  EXPECT_ERROR(read_text(leaf + leaf), input_error,
               "f:2: record: 'S': expected a name that no other record has");
  EXPECT_ERROR(read_text(leaf + "what is this\n"), input_error,
               "f:2: record: 'what is this': expected Switch, Ca, or a port in brackets");
  EXPECT_ERROR(read_text("[1] \"H\"[1]\n", {}, "ibnetdiscover"), input_error,
               "f:1: expected a record before its ports");
}

TEST(ibnetdiscover_of_others, a_real_fabric) {
  READ_SHARED_OR_SKIP(t, "ibnetdiscover/topograph_example.out", {});
  // 582 adapters: 40 aggregation nodes and 69 without a host's name are left out, 473 are in 122
  // hosts (109 x 4 + 11 x 3 + 2 x 2). The switches' records name 1064 ends at switches: 532 cables.
  EXPECT_EQ(counts_of(t), (counts{0, 0, 40, 122, 473 + 532}));
  EXPECT_THAT(rates(t, link_kind::network), Each(50));  // 4xNDR
  EXPECT_THAT(t.said.missing, Contains(HasSubstr("the hosts of 109 adapters")));
}

TEST(ibnetdiscover_of_others, ibsim) {
  READ_SHARED_OR_SKIP(t, "ibnetdiscover/ibsim_net.txt", {});
  EXPECT_EQ(counts_of(t), (counts{0, 0, 2, 2, 2 + 2}));
  EXPECT_THAT(neighbours(t, "Switch2"), ElementsAre("Switch1", "Switch1"));
}

}  // namespace ibnetdiscover_test
}  // namespace attnsim::formats
