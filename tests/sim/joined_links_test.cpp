#include "sim/joined_links.hpp"

#include <gmock/gmock.h>

namespace attnsim {
namespace joined_links_test {

using testing::ElementsAre;

using route = std::vector<link_use>;
using route_list = std::vector<route>;

// Routes a and b cross links 0 and 1 alike, c joins them on 2: 0 and 1 are one, as wide as 1.
TEST(joined_links, links_in_series_are_one_as_wide_as_the_narrowest) {
  const route_list routes{{{0}, {1}, {2}}, {{0, 2}, {1, 2}, {2, 2}}, {{2}}};
  const auto joined = join_links({50, 40, 60}, routes);
  EXPECT_THAT(joined.number_of, ElementsAre(0, 0, 1));
  EXPECT_THAT(joined.capacities, ElementsAre(40, 60));
  EXPECT_THAT(joined.routes, ElementsAre(route{{0}, {1}}, route{{0, 2}, {1, 2}}, route{{1}}));
}

TEST(joined_links, other_weights_are_another_link) {
  const route_list routes{{{0}, {1, 2}}};
  const auto joined = join_links({50, 50}, routes);
  EXPECT_THAT(joined.number_of, ElementsAre(0, 1));
  EXPECT_EQ(joined.routes, routes);
}

TEST(joined_links, unused_links_do_no_harm) {
  const auto joined = join_links({10, 20, 30}, route_list{{{1}}});
  EXPECT_THAT(joined.number_of, ElementsAre(0, 1, 0));
  EXPECT_THAT(joined.routes, ElementsAre(route{{1}}));
}

}  // namespace joined_links_test
}  // namespace attnsim
