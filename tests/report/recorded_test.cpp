#include "report/recorded.hpp"

#include <gmock/gmock.h>

#include "tests/ring_on_star.hpp"

namespace attnsim::report {
namespace recorded_test {

using testing::HasSubstr;

// Three steps, nothing computed.
class ring_of_four : public testing::Test {
 protected:
  const cluster c = star(4);
  const std::vector<recorded_pass> passes =
      ask::predicted_run(c, predict(c, problem(4), ring(4), 4, pass_kind::forward)).passes();
};

TEST_F(ring_of_four, breakdown_shows_three_exposed_steps) {
  const auto s = breakdown(passes);
  const auto& rows = s.chart["rows"];
  ASSERT_EQ(rows.size(), 2u);  // the compute stream and the ring's
  EXPECT_EQ(rows[0]["label"], "forward: compute");
  EXPECT_NEAR(rows[0]["values"][3], 3 * step_s, 1e-8);
  EXPECT_NEAR(rows[1]["values"][2], 3 * step_s, 1e-8);
  EXPECT_THAT(s.rows.str(), HasSubstr("4.033 ms"));
}

TEST_F(ring_of_four, timeline_has_every_operation) {
  const auto s = critical_rank(passes);
  EXPECT_NEAR(s.chart["end"], 3 * step_s, 1e-8);
  std::size_t shifts = 0;
  for (const auto& i : s.chart["intervals"]) {
    if (i["name"] != "shift") continue;
    EXPECT_EQ(s.chart["lanes"][i["lane"].get<std::size_t>()], passes[0].program.streams[1]);
    EXPECT_NEAR(i["end"].get<double>() - i["start"].get<double>(), step_s, 1e-8);
    ++shifts;
  }
  EXPECT_EQ(shifts, 3u);
}

TEST_F(ring_of_four, lanes_of_two_runs_are_neighbours) {
  auto both = passes;
  both[0].run = "predicted";
  both.push_back(passes[0]);
  both[1].run = "measured";
  const auto lanes = critical_rank(both).chart["lanes"];
  ASSERT_EQ(lanes.size(), 4u);
  EXPECT_EQ(lanes[0], "compute predicted");
  EXPECT_EQ(lanes[1], "compute measured");
}

// 1.342177 of every 1.344177 ms.
TEST_F(ring_of_four, links_are_busy_but_for_latency) {
  const auto s = link_utilisation(c, passes);
  EXPECT_THAT(s.rows.str(), HasSubstr("99.9 %"));
  EXPECT_THAT(s.drawing, HasSubstr("99.9 % used"));
  EXPECT_EQ(s.chart, nullptr);
}

TEST(critical_rank, joins_what_no_screen_could_show) {
  schedule program;
  program.streams = {"compute"};
  program.program = {{.kind = op_kind::attention}, {.kind = op_kind::merge}};
  timeline t;
  rank_timeline rank{.end = seconds(1)};
  for (int i = 0; i < 10000; ++i)  // 0.1 ms each, of 1 s
    rank.intervals.push_back({0, seconds(i * 1e-4), seconds((i + 1) * 1e-4)});
  t.ranks = {rank};
  const auto s = critical_rank({{{}, program, t, {}}});
  ASSERT_EQ(s.chart["intervals"].size(), 1u);
  EXPECT_EQ(s.chart["intervals"][0]["operations"], 10000);
  EXPECT_EQ(s.chart["intervals"][0]["end"], 1);
}

}  // namespace recorded_test
}  // namespace attnsim::report
