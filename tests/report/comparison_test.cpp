#include "report/comparison.hpp"

#include <gmock/gmock.h>

namespace attnsim::report {
namespace {

TEST(predicted_against, says_the_error) {
  const auto s = predicted_against(
      "measured", "s",
      {{"forward", "total", 0.002, 0.0019, 0.0018, 0.0021}, {"", "x", 4, 5, 0, 0}});
  EXPECT_EQ(s.title, "Predicted against measured");
  EXPECT_EQ(s.rows.str(),
            "         figure  measured  predicted    error\n"
            "forward  total   2.000 ms   1.900 ms   -5.0 %\n"
            "         x        4.000 s    5.000 s  +25.0 %\n");
  EXPECT_EQ(s.chart["kind"], "pairs");
  EXPECT_EQ(s.chart["rows"][0]["low"], 0.0018);
  EXPECT_FALSE(s.chart["rows"][1].contains("low"));
}

TEST(predicted_against, many_figures_are_points) {
  const std::vector<comparison> figures(25, {"a", "b", 1, 2});
  EXPECT_EQ(predicted_against("published", "ms", figures).chart["kind"], "scatter");
}

}  // namespace
}  // namespace attnsim::report
