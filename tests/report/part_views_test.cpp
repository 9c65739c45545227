#include "report/part_views.hpp"

#include <gtest/gtest.h>

namespace attnsim::report {
namespace part_views_test {

compared_points three() {
  return {{compared("kernels", "p5: a, \"b\"", seconds(1e-3), 0.25, seconds(1e-3)),
           compared("kernels", "p5: c", seconds(2e-3), 0.25, seconds(4e-3)),
           compared("schedules", "p5: d", seconds(3), 0.5, seconds(2))},
          {1, 2}};
}

TEST(part_views, table_sums_up_each_part) {
  EXPECT_EQ(
      to_table(three()),
      "part       points  median error    95 %  in interval    worst  of\n"
      "kernels         2        25.0 %  47.5 %       50.0 %  -50.0 %  p5: c\n"
      "schedules       1        50.0 %  50.0 %      100.0 %  +50.0 %  p5: d\n"
      "fastest schedule named right in 1 of 2 problems whose fastest two differ by over 3 %\n");
}

TEST(part_views, csv_quotes) {
  EXPECT_EQ(to_csv(three()),
            "part,what,predicted_us,low_us,high_us,measured_us,error\n"
            "kernels,\"p5: a, \"\"b\"\"\",1000,750,1250,1000,0.0000\n"
            "kernels,p5: c,2000,1500,2500,4000,-0.5000\n"
            "schedules,p5: d,3e+06,1.5e+06,4.5e+06,2e+06,0.5000\n");
}

TEST(part_views, json_has_parts_and_points) {
  const auto json = to_json(three());
  EXPECT_EQ(json["fastest_named_right"].dump(), R"({"right":1,"of":2})");
  EXPECT_EQ(json["parts"][1].dump(),
            R"({"part":"schedules","points":1,"median_error":0.5,"percentile_95_error":0.5,)"
            R"("in_interval":1.0})");
  EXPECT_EQ(json["points"][1].dump(),
            R"({"part":"kernels","what":"p5: c","predicted_s":0.002,"interval_s":[0.0015,0.0025],)"
            R"("measured_s":0.004,"error":-0.5})");
}

TEST(part_views, page_holds_the_json) {
  const auto page = page_of(three(), "p5");
  EXPECT_EQ(page.result, to_json(three()));
  EXPECT_EQ(page.title, "Predicted against measured: p5");
  ASSERT_EQ(page.sections.size(), 3u);
  EXPECT_EQ(page.sections[1].title, "kernels");
}

}  // namespace part_views_test
}  // namespace attnsim::report
