#include "sweep/spec.hpp"

#include <gmock/gmock.h>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::sweep {
namespace spec_test {

using testing::ElementsAre;

std::vector<std::vector<std::string>> values(const std::string& text) {
  const auto s = parse_spec(text, "sweep.yaml");
  std::vector<std::vector<std::string>> rows;
  for (const auto& p : s.points) rows.push_back(s.values_of(p));
  return rows;
}

TEST(spec, last_key_changes_fastest) {
  EXPECT_THAT(values("seq: [1K, 2K]\nnics.bandwidth: 400 Gb/s\nheads: [8, 16]\n"),
              ElementsAre(ElementsAre("1K", "400 Gb/s", "8"), ElementsAre("1K", "400 Gb/s", "16"),
                          ElementsAre("2K", "400 Gb/s", "8"), ElementsAre("2K", "400 Gb/s", "16")));
}

TEST(spec, points_belong_together) {
  const std::string text = R"(
seq: [1, 2]
points:
  - {schedule: ring}
  - {schedule: mesh, grid: [4x2, 2x4]}
)";
  EXPECT_THAT(parse_spec(text, "s").keys, ElementsAre("seq", "schedule", "grid"));
  EXPECT_THAT(values(text),
              ElementsAre(ElementsAre("1", "ring", ""), ElementsAre("1", "mesh", "4x2"),
                          ElementsAre("1", "mesh", "2x4"), ElementsAre("2", "ring", ""),
                          ElementsAre("2", "mesh", "4x2"), ElementsAre("2", "mesh", "2x4")));
}

TEST(spec, knows_where_a_value_stands) {
  const auto s = parse_spec("seq: 1\nheads: [8,\n  16]\n", "sweep.yaml");
  EXPECT_EQ(s.settings.at(0).where, "sweep.yaml:1: seq");
  EXPECT_EQ(s.settings.at(2).where, "sweep.yaml:3: heads[1]");
}

TEST(spec, refuses_what_is_no_list_of_values) {
  EXPECT_ERROR(parse_spec("seq: {a: 1}", "s"), input_error,
               "s:1: seq: '{...}': expected a single value");
  EXPECT_ERROR(parse_spec("seq: |\n  1\n  2\n", "s"), input_error,
               "s:1: seq: '1\n2\n': expected one line of UTF-8 text without control characters");
  EXPECT_ERROR(parse_spec("seq: 1\nheads: []", "s"), input_error,
               "s:2: heads: '[...]': expected at least one value");
  EXPECT_ERROR(parse_spec("seq: 1\npoints:\n- seq: 2\n", "s"), input_error,
               "s:3: points: '[...]': expected each key once for a point; given twice: seq");
}

TEST(spec, refuses_too_many_points) {
  std::string text, values = "[0";
  for (int i = 1; i < 250; ++i) values += "," + std::to_string(i);
  for (const auto* key : {"a", "b", "c"}) text += std::string(key) + ": " + values + "]\n";
  EXPECT_ERROR(parse_spec(text, "s"), input_error,
               "s:3: c: '[...]': expected at most 10,000,000 points");
}

}  // namespace spec_test
}  // namespace attnsim::sweep
