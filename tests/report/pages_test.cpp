#include "report/pages.hpp"

#include <gmock/gmock.h>

#include "report/results.hpp"
#include "report/search_views.hpp"
#include "tests/report/page_data.hpp"
#include "tests/ring_on_star.hpp"

namespace attnsim::report {
namespace pages_test {

using testing::HasSubstr;

double sum(const nlohmann::ordered_json& values) {
  double total = 0;
  for (const auto& v : values) total += v.get<double>();
  return total;
}

TEST(page_of, a_prediction_has_its_json_and_charts_of_the_same_values) {
  const auto c = star(4);
  ask::predicted_run run(c, predict(c, problem(4), ring(4), 4, pass_kind::both));
  const auto& p = run.prediction();
  const auto html = page_of(c, run).html();
  const auto data = data_of(html);
  EXPECT_EQ(data["result"], to_json(p));
  const auto& times = data["charts"][0]["rows"][0];
  EXPECT_EQ(times["total"], data["result"]["time_s"]);
  EXPECT_EQ(times["low"], data["result"]["time_interval_s"][0]);
  EXPECT_NEAR(sum(times["values"]), p.time.value(), 1e-12);
  EXPECT_NEAR(data["charts"][2]["end"], p.time.value(), 1e-12);
  for (const auto* part : {"<h2 id=\"s0\">Time", "Where the time goes",
                           "Timeline of the critical rank", "Link utilisation", "Memory"})
    EXPECT_THAT(html, HasSubstr(part));
}

TEST(page_of, a_plan_ranks_its_candidates) {
  const auto c = star(4);
  const auto first = predict(c, problem(4), ring(4), 4, pass_kind::forward);
  auto second = first;
  second.time = 2 * first.time;
  const plan_result plan{.problem = problem(4), .candidates = {first, second}};
  const auto page = page_of(c, plan);
  EXPECT_EQ(page.result, to_json(plan));
  EXPECT_EQ(page.sections.front().chart["rows"][1]["total"], 2 * first.time.value());
  EXPECT_EQ(page.sections.back().title, "Crossovers");
}

TEST(page_so_far, ranks_what_is_known) {
  const auto c = star(4);
  const auto page = page_so_far(c, {predict(c, problem(4), ring(4), 4, pass_kind::forward)});
  EXPECT_EQ(page.title, "Plan so far: attention on star, 4 ranks");
  EXPECT_EQ(page.sections.size(), 1u);
}

TEST(page_of, a_search_has_the_best_published_beside_what_was_found) {
  const auto c = star(4);
  search_result r{.found = predict(c, problem(4), ring(4), 4, pass_kind::forward)};
  r.published = {r.found};
  r.published.front().time = 2 * r.found.time;
  const auto page = page_of(c, r);
  EXPECT_EQ(page.title, "Search: attention on star, 4 ranks");
  EXPECT_THAT(page.answer, HasSubstr("100.0 % faster than ring 4x1"));
  EXPECT_EQ(page.result, to_json(r));
  EXPECT_EQ(page.sections.front().chart["rows"][1]["total"], 2 * r.found.time.value());
}

}  // namespace pages_test
}  // namespace attnsim::report
