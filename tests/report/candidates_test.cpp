#include "report/candidates.hpp"

#include <gmock/gmock.h>

namespace attnsim::report {
namespace candidates_test {

using nlohmann::ordered_json;
using testing::HasSubstr;

prediction ring(double exposed) {
  prediction p{.cluster = "c", .ranks = 4, .chosen = {.schedule = "ring", .rows = 4, .cols = 1}};
  p.passes = {{.pass = pass_kind::forward, .compute = seconds(2)},
              {.pass = pass_kind::backward, .compute = seconds(4)}};
  p.passes[0].memory = {.peak = byte_count(7),
                        .resident = byte_count(4),
                        .working = byte_count(2),
                        .scratch = byte_count(1)};
  p.passes[1].memory = {.peak = byte_count(25),
                        .resident = byte_count(10),
                        .working = byte_count(12),
                        .scratch = byte_count(3)};
  p.exposed_communication = seconds(exposed);
  p.time = seconds(6 + exposed);
  p.low = seconds(5);
  p.high = seconds(9);
  return p;
}

TEST(ranking, stacks_the_passes_and_what_is_exposed) {
  const auto s = ranking({ring(1), ring(2)});
  EXPECT_EQ(s.chart["kind"], "bars");
  EXPECT_EQ(s.chart["series"][2]["name"], "exposed communication");
  EXPECT_EQ(s.chart["rows"][0], ordered_json({{"label", "#1 ring 4x1"},
                                              {"values", {2.0, 4.0, 1.0}},
                                              {"total", 7.0},
                                              {"low", 5.0},
                                              {"high", 9.0}}));
  EXPECT_EQ(s.chart["rows"][1]["values"], ordered_json({2.0, 4.0, 2.0}));
  EXPECT_THAT(s.rows.str(), HasSubstr("8.000 s"));
}

TEST(ranking, shows_what_the_host_delays) {
  auto p = ring(1);
  p.compute = seconds(6);
  p.host = seconds(9);
  p.time = seconds(10);  // one pass is bound by the host
  auto device_bound = ring(2);
  device_bound.compute = seconds(6);
  const auto s = ranking({p, device_bound});
  EXPECT_EQ(s.chart["series"][3]["name"], "waiting for the host");
  EXPECT_EQ(s.chart["rows"][0]["values"], ordered_json({2.0, 4.0, 1.0, 3.0}));
  EXPECT_EQ(s.chart["rows"][1]["values"], ordered_json({2.0, 4.0, 2.0, 0.0}));
}

TEST(ranking, recomputed_forward_passes_count_as_forward) {
  auto p = ring(1);
  p.passes.insert(p.passes.begin(), p.passes[0]);
  const auto row = ranking({p}).chart["rows"][0];
  EXPECT_EQ(row["values"], ordered_json({4.0, 4.0, 1.0}));
  EXPECT_EQ(row["label"], "ring 4x1");  // no place among one
}

TEST(memory, of_every_pass_against_the_device) {
  const auto s = memory(ring(1), byte_count(100));
  EXPECT_EQ(s.chart["limit"]["value"], 100);
  EXPECT_EQ(s.chart["rows"][0]["label"], "forward");
  EXPECT_EQ(s.chart["rows"][0]["values"], ordered_json({4, 2, 1}));
  EXPECT_EQ(s.chart["rows"][1]["total"], 25);
  EXPECT_THAT(s.rows.str(), HasSubstr("25.0 %"));
}

TEST(memory, of_every_candidates_largest_pass) {
  const auto s = memory(std::vector{ring(1), ring(2)}, byte_count(100));
  ASSERT_EQ(s.chart["rows"].size(), 2u);
  EXPECT_EQ(s.chart["rows"][1]["label"], "#2 ring 4x1");
  EXPECT_EQ(s.chart["rows"][1]["values"], ordered_json({10, 12, 3}));
}

}  // namespace candidates_test
}  // namespace attnsim::report
