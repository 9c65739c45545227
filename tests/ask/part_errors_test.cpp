#include "ask/part_errors.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace part_errors_test {

compared_point point(const char* part, double predicted, double measured) {
  return {part,
          "p",
          seconds(predicted),
          seconds(0.9 * predicted),
          seconds(1.1 * predicted),
          seconds(measured)};
}

// Errors of 0, +25 and -50 %: the middle one is 25 %, 95 % are below 47.5 %, the worst is the last; one measurement lies within 10 % of its prediction.
TEST(part_errors, are_medians_percentiles_and_the_worst) {
  const auto all = errors_by_part({point("kernels", 1, 1), point("kernels", 1.25, 1),
                                   point("schedules", 2, 1), point("kernels", 0.5, 1)});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].part, "kernels");
  EXPECT_EQ(all[0].points, 3u);
  EXPECT_DOUBLE_EQ(all[0].median, 0.25);
  EXPECT_DOUBLE_EQ(all[0].percentile_95, 0.475);
  EXPECT_DOUBLE_EQ(all[0].inside, 1.0 / 3);
  EXPECT_DOUBLE_EQ(all[0].worst.error(), -0.5);
  EXPECT_DOUBLE_EQ(all[1].median, 1);
}

TEST(part_errors, an_interval_is_a_share_of_the_prediction) {
  const auto p = compared("kernels", "p", seconds(2), 0.25, seconds(2.5));
  EXPECT_EQ(p.low, seconds(1.5));
  EXPECT_EQ(p.high, seconds(2.5));
  EXPECT_TRUE(p.inside());
  EXPECT_DOUBLE_EQ(p.error(), -0.2);
}

}  // namespace part_errors_test
}  // namespace attnsim
