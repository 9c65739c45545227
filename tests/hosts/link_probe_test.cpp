#include "tests/hosts/link_probe.hpp"

#include <gmock/gmock.h>

namespace attnsim::hosts {
namespace link_probe_test {

using testing::ElementsAre;

constexpr bandwidth link{12.5e6};

TEST(link_kinds, are_those_of_the_network) {
  EXPECT_THAT(link_kinds(host_network::star(4, link)), ElementsAre(link_kind{"leaf", {0, 1}, {0}}));
  EXPECT_THAT(link_kinds(host_network::tree(4, 2, link, link)),
              ElementsAre(link_kind{"leaf", {0, 1}, {0}}, link_kind{"core", {0, 2}, {0}}));
  EXPECT_THAT(link_kinds(host_network::tree(2, 1, link, link)),
              ElementsAre(link_kind{"core", {0, 1}, {0}}));
  EXPECT_THAT(
      link_kinds(host_network::two_rails(2, link)),
      ElementsAre(link_kind{"leaf rail0", {0, 1}, {0}}, link_kind{"leaf rail1", {0, 1}, {1}},
                  link_kind{"leaf all rails", {0, 1}, {0, 1}}));
  EXPECT_TRUE(link_kinds(host_network::star(1, link)).empty());
}

TEST(measure_links, finds_the_rates_that_were_set) {
#ifdef LINK_PROBE
  if (const auto lack = emulated_hosts::missing(); !lack.empty()) GTEST_SKIP() << lack;
  const emulated_hosts hosts(host_network::tree(4, 2, link, bandwidth(6.25e6)));
  const auto links = measure_links(hosts, LINK_PROBE);
  ASSERT_EQ(links.size(), 2u);
  const double leaf = link.value() * hosts.network().payload_share();
  EXPECT_NEAR(links[0].one_way_fit.rate.value(), leaf, 0.05 * leaf);
  EXPECT_NEAR(links[1].one_way_fit.rate.value(), leaf / 2, 0.05 * leaf / 2);
  EXPECT_NEAR(links[0].both_ways_fit.rate.value(), leaf,
              0.06 * leaf);  // shared with acknowledgements
  EXPECT_LT(links[0].one_way_fit.latency.value(), 5e-3);
#else
  GTEST_SKIP() << "built without MPI";
#endif
}

}  // namespace link_probe_test
}  // namespace attnsim::hosts
