#include "report/crossovers.hpp"

#include <gtest/gtest.h>

namespace attnsim::report {
namespace crossovers_test {

TEST(crossovers, tabulates_times_and_the_best) {
  const auto s = crossovers(ask::crossing{.of = "tokens",
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

}  // namespace crossovers_test
}  // namespace attnsim::report
