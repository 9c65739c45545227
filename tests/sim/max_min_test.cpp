#include "sim/max_min.hpp"

#include <stdexcept>

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"

namespace attnsim {
namespace max_min_test {

using testing::DoubleEq;
using testing::ElementsAre;

std::vector<double> rates(std::vector<double> capacities, std::vector<flow_demand> flows) {
  return max_min_rates(capacities, flows);
}

TEST(max_min, flows_on_one_link_share_it_equally) {
  // 12 / 3
  EXPECT_THAT(rates({12}, {{{{0}}}, {{{0}}}, {{{0}}}}), ElementsAre(4, 4, 4));
}

TEST(max_min, what_one_flow_cannot_use_goes_to_the_others) {
  // Link 0 (10): a, b. Link 1 (2): b, c.
  // Link 1 fills first, at 2 / 2 = 1: b = c = 1. Then a = 10 - 1 = 9.
  EXPECT_THAT(rates({10, 2}, {{{{0}}}, {{{0}, {1}}}, {{{1}}}}), ElementsAre(9, 1, 1));
}

TEST(max_min, the_long_flow_of_a_line_of_links_gets_its_share) {
  // Three links (1), one flow over all of them and one on each: all links fill together at 1 / 2.
  EXPECT_THAT(rates({1, 1, 1}, {{{{0}, {1}, {2}}}, {{{0}}}, {{{1}}}, {{{2}}}}),
              ElementsAre(0.5, 0.5, 0.5, 0.5));
}

TEST(max_min, levels_rise_from_link_to_link) {
  // Link 0 (3): a, b, c. Link 1 (4): c, d. Link 2 (10): d, e.
  // 3 / 3 = 1: a = b = c = 1. Link 1: d = 4 - 1 = 3. Link 2: e = 10 - 3 = 7.
  EXPECT_THAT(rates({3, 4, 10}, {{{{0}}}, {{{0}}}, {{{0}, {1}}}, {{{1}, {2}}}, {{{2}}}}),
              ElementsAre(1, 1, 1, 3, 7));
}

TEST(max_min, weights_count_as_that_many_flows) {
  // a takes 2 r, b takes 0.5 r of 10: r = 10 / 2.5.
  EXPECT_THAT(rates({10}, {{{{0, 2}}}, {{{0, 0.5}}}}), ElementsAre(4, 4));
}

TEST(max_min, a_collective_is_as_fast_as_its_slowest_link) {
  // a puts r on link 0 (6), 3 r on link 1 (9), r / 2 on link 2 (1): r = min(6, 3, 2) = 2.
  EXPECT_THAT(rates({6, 9, 1}, {{{{0, 1}, {1, 3}, {2, 0.5}}}}), ElementsAre(2));
}

TEST(max_min, a_link_crossed_twice_counts_twice) {
  EXPECT_THAT(rates({10}, {{{{0}, {0}}}}), ElementsAre(5));
}

TEST(max_min, limits_leave_room_to_others) {
  // a = 1 by its limit, the rest is (10 - 1) / 2.
  EXPECT_THAT(rates({10}, {{{{0}}, 1}, {{{0}}}, {{{0}}, 20}}), ElementsAre(1, 4.5, 4.5));
}

TEST(max_min, flows_without_links_are_bound_by_their_limit_only) {
  EXPECT_THAT(rates({1}, {{{}, 7}, {{}}}), ElementsAre(7, unlimited));
}

TEST(max_min, thirds_are_exact_to_the_last_bit) {
  EXPECT_THAT(
      rates({1, 1}, {{{{0}, {1}}}, {{{0}}}, {{{0}}}, {{{1}}}}),
      ElementsAre(DoubleEq(1.0 / 3), DoubleEq(1.0 / 3), DoubleEq(1.0 / 3), DoubleEq(2.0 / 3)));
}

TEST(max_min, refuses_wrong_input) {
  EXPECT_ERROR(rates({1, 0}, {}), std::invalid_argument,
               "link 1: capacity 0 B/s: expected positive and finite");
  EXPECT_ERROR(rates({unlimited}, {}), std::invalid_argument,
               "link 0: capacity inf B/s: expected positive and finite");
  EXPECT_ERROR(rates({1}, {{{{1}}}}), std::invalid_argument,
               "path: link 1: expected a number below 1");
  EXPECT_ERROR(rates({1}, {{{{0, -2}}}}), std::invalid_argument,
               "path: link 0: weight -2: expected positive and finite");
  EXPECT_ERROR(rates({1}, {{{{0}}, 0}}), std::invalid_argument,
               "flow: rate limit 0 B/s: expected positive");
}

}  // namespace max_min_test
}  // namespace attnsim
