#include "report/crossovers.hpp"

#include <gmock/gmock.h>

#include "tests/report/small_cluster.hpp"

namespace attnsim::report {
namespace {

using testing::ElementsAre;

TEST(crossovers, tabulates_times_and_the_best) {
  const auto s = crossovers({.of = "tokens",
                             .values = {"1K", "2K"},
                             .asked = 1,
                             .times = {{"ring", {seconds(1), seconds(4)}},
                                       {"mesh", {seconds(2), seconds(3)}},
                                       {"usp", {seconds(), seconds(5)}}}},
                            "note");
  EXPECT_EQ(s.rows.str(),
            "tokens  best     ring     mesh      usp\n"
            "    1K  ring  1.000 s  2.000 s        -\n"
            "    2K  mesh  4.000 s  3.000 s  5.000 s\n");
  EXPECT_EQ(s.chart["asked"], 1);
  EXPECT_EQ(s.chart["lines"][0]["values"], nlohmann::ordered_json({1.0, 4.0}));
  EXPECT_EQ(s.chart["lines"][2]["values"], nlohmann::ordered_json({nullptr, 5.0}));
}

// 64K tokens are 16K a rank and 3 steps of 1.344177 ms; 16 times as many: 3 x (16 x 1.342177 + 0.002).
TEST(over_sequences, halves_and_doubles_four_times) {
  const auto c = star(4);
  const auto p = predict(c, problem(4), ring(4), 4, pass_kind::forward);
  const auto x = over_sequences(c, {p, p});
  EXPECT_THAT(x.values, ElementsAre("4K", "8K", "16K", "32K", "64K", "128K", "256K", "512K", "1M"));
  EXPECT_EQ(x.asked, 4);
  ASSERT_EQ(x.times.size(), 1u);  // one a schedule
  EXPECT_NEAR(x.times[0].second[4].value(), 3 * step_s, 1e-7);
  EXPECT_NEAR(x.times[0].second[8].value(), 3 * (16 * 1.342177e-3 + 2e-6), 1e-6);
}

TEST(over_sequences, lengths_that_do_not_divide_are_left_out) {
  const auto c = star(4);
  auto a = problem(4);
  a.sequence = 40;  // 20, 10, 5 and 2 have no four equal chunks
  const auto x = over_sequences(c, {predict(c, a, ring(4), 4, pass_kind::forward)});
  EXPECT_EQ(x.times[0].second[2], seconds());
  EXPECT_GT(x.times[0].second[3], seconds());
}

}  // namespace
}  // namespace attnsim::report
