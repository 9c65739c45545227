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

TEST(crossovers, say_from_where_on_times_are_assumed) {
  ask::pass_crossing x{.times = {.of = "new / all tokens",
                                 .values = {"1", "1/2"},
                                 .times = {{"keys", {seconds(1), seconds(4)}},
                                           {"queries", {seconds(2), seconds(3)}}}},
                       .even_bytes = 0.25};
  const std::string told =
      "new / all tokens  best        keys  queries\n"
      "               1  keys     1.000 s  2.000 s\n"
      "             1/2  queries  4.000 s  3.000 s\n"
      "queries are better passed than keys where 1/2 of all tokens are new, or fewer; both send as "
      "many bytes at 0.250\n";
  EXPECT_EQ(to_text(x), told);
  x.assumed_from = 1;
  x.assumed = "nobody measured them";
  EXPECT_EQ(
      to_text(x),
      told + "from 1/2 on kernel times of few query rows are assumed: nobody measured them\n");
}

}  // namespace crossovers_test
}  // namespace attnsim::report
