#include "report/comparison.hpp"

#include <gmock/gmock.h>

namespace attnsim::report {
namespace comparison_test {

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

TEST(predicted_against, long_labels_lose_the_words_that_they_share) {
  const std::string folder = "measurements/of/the/last/week/trace.json";
  const auto s = predicted_against("measured", "s",
                                   {{folder, "rank 0, operation 10 (shift)", 1, 1},
                                    {folder, "rank 0, operation 1 (attention)", 1, 1}});
  EXPECT_EQ(s.note, "All of " + folder + ": rank 0, operation");
  EXPECT_EQ(s.chart["rows"][0]["name"], "10 (shift)");
  EXPECT_EQ(s.chart["rows"][1]["name"], "1 (attention)");
  EXPECT_EQ(s.chart["rows"][1]["series"], "");
  const auto brief = predicted_against("measured", "s", {{"a", "b c", 1, 1}, {"a", "b d", 1, 1}});
  EXPECT_EQ(brief.note, "");
  EXPECT_EQ(brief.chart["rows"][0]["name"], "b c");
}

}  // namespace comparison_test
}  // namespace attnsim::report
