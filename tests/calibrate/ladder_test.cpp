#include "calibrate/ladder.hpp"

#include <gmock/gmock.h>

namespace attnsim {
namespace {

ladder_point point(const char* rung, double predicted, double measured) {
  return {rung,
          "p",
          seconds(predicted),
          seconds(0.9 * predicted),
          seconds(1.1 * predicted),
          seconds(measured)};
}

// Errors of 0, +25 and -50 %: the middle one is 25 %, the worst the last; one measurement lies within 10 % of its prediction.
TEST(summarise, errors_by_rung) {
  const auto all = summarise({point("kernels", 1, 1), point("kernels", 1.25, 1),
                              point("schedules", 2, 1), point("kernels", 0.5, 1)});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].rung, "kernels");
  EXPECT_EQ(all[0].points, 3u);
  EXPECT_DOUBLE_EQ(all[0].median, 0.25);
  EXPECT_DOUBLE_EQ(all[0].percentile_95, 0.5);
  EXPECT_DOUBLE_EQ(all[0].inside, 1.0 / 3);
  EXPECT_DOUBLE_EQ(all[0].worst.error(), -0.5);
  EXPECT_DOUBLE_EQ(all[1].median, 1);
}

TEST(rung_of, by_what_is_moved) {
  EXPECT_EQ(rung_of(kernel_point{}), "kernels");
  EXPECT_EQ(rung_of(memory_point{}), "memory");
  EXPECT_EQ(rung_of(transfer_point{.operation = transfer_kind::all_to_all}), "transfers");
  EXPECT_EQ(rung_of(transfer_point{.operation = transfer_kind::all_reduce}), "collectives");
  EXPECT_EQ(rung_of(overlap_point{}), "overlap");
}

}  // namespace
}  // namespace attnsim
