#include "report/what_if_views.hpp"

#include <gtest/gtest.h>

namespace attnsim::report {
namespace what_if_views_test {

ask::what_if_answer two_values() {
  ask::what_if_answer w{.varied = {.key = "seq", .values = {"1K", "2K"}}};
  for (const auto* name : {"ring", "usp"}) {
    auto& best = w.best.emplace_back();
    best.chosen = {.schedule = name, .rows = 4, .cols = 1};
    best.bottleneck.kind = "compute";
    best.ranks = 4;
    best.cluster = "p5";
  }
  w.schedules = {{"ring", {seconds(1), seconds(4)}}, {"usp", {seconds(), seconds(2)}}};
  return w;
}

TEST(what_if_views, table_has_a_row_a_value_and_where_the_best_changes) {
  EXPECT_EQ(to_table(two_values()),
            "seq  best  grid  bound by     ring      usp\n"
            " 1K  ring   4x1  compute   1.000 s        -\n"
            " 2K  usp    4x1  compute   4.000 s  2.000 s\n"
            "between 1K and 2K the best changes from ring to usp\n");
}

TEST(what_if_views, csv_has_a_row_a_value_and_feasible_schedule) {
  EXPECT_EQ(to_csv(two_values()), "seq,schedule,time_s\n1K,ring,1\n2K,ring,4\n2K,usp,2\n");
}

TEST(what_if_views, json_and_page_have_the_same_times) {
  const auto json = to_json(two_values());
  EXPECT_EQ(json["key"], "seq");
  EXPECT_EQ(json["values"][0]["time_s"].dump(), R"({"ring":1.0})");
  EXPECT_EQ(json["values"][1]["best"]["schedule"], "usp");
  const auto page = page_of(two_values());
  EXPECT_EQ(page.result, json);
  EXPECT_EQ(page.answer, "between 1K and 2K the best changes from ring to usp");
  EXPECT_EQ(page.title, "What if: seq on p5, 4 ranks");
}

}  // namespace what_if_views_test
}  // namespace attnsim::report
