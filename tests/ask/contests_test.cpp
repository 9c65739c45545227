#include "ask/contests.hpp"

#include <gtest/gtest.h>

namespace attnsim::ask {
namespace contests_test {

std::pair<int, int> named_right(const contests& all) {
  const auto [right, of] = all.named_right();
  return {right, of};
}

TEST(contests, the_fastest_predicted_is_the_fastest_measured_or_not) {
  contests all;
  all.add("a", seconds(1), seconds(2));
  all.add("a", seconds(2), seconds(3));
  EXPECT_EQ(named_right(all), std::pair(1, 1));
  all.add("b", seconds(1), seconds(3));
  all.add("b", seconds(2), seconds(2));
  EXPECT_EQ(named_right(all), std::pair(1, 2));
}

TEST(contests, count_where_the_fastest_two_differ_by_over_3_percent) {
  contests all;
  all.add("alone", seconds(1), seconds(1));
  all.add("close", seconds(1), seconds(1));
  all.add("close", seconds(2), seconds(1.03));
  all.add("close", seconds(3), seconds(2));
  EXPECT_EQ(named_right(all), std::pair(0, 0));
  all.add("apart", seconds(1), seconds(1));
  all.add("apart", seconds(2), seconds(1.04));
  EXPECT_EQ(named_right(all), std::pair(1, 1));
}

// 1.2 and 1.0 of one program are 1.1.
TEST(contests, one_program_under_two_names_counts_once) {
  contests all;
  all.add("a", seconds(1), seconds(1.2));
  all.add("a", seconds(1), seconds(1.0));
  all.add("a", seconds(2), seconds(1.11));
  EXPECT_EQ(named_right(all), std::pair(0, 0));
  all.add("a", seconds(3), seconds(0.9));
  EXPECT_EQ(named_right(all), std::pair(0, 1));
}

}  // namespace contests_test
}  // namespace attnsim::ask
