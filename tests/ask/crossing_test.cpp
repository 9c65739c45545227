#include "ask/crossing.hpp"

#include <gmock/gmock.h>

#include "tests/ring_on_star.hpp"

namespace attnsim::ask {
namespace crossing_test {

using testing::ElementsAre;

std::string schedule(const prediction& p) {
  return p.chosen.schedule;
}

TEST(crossing, the_best_is_the_fastest_that_is_feasible) {
  const crossing x{.values = {"1K", "2K", "4K"},
                   .times = {{"ring", {seconds(), seconds(2), seconds()}},
                             {"mesh", {seconds(3), seconds(1), seconds()}}}};
  EXPECT_EQ(x.best(0), "mesh");
  EXPECT_EQ(x.best(1), "mesh");
  EXPECT_EQ(x.best(2), std::nullopt);
}

TEST(crossing, of_a_what_if_has_its_times) {
  what_if_answer w{.varied = {.key = "seq", .values = {"1K", "2K"}}};
  w.schedules = {{"ring", {seconds(1), seconds(2)}}};
  const auto x = crossing_of(w);
  EXPECT_EQ(x.of, "seq");
  EXPECT_EQ(x.asked, -1);
  EXPECT_THAT(x.values, ElementsAre("1K", "2K"));
  EXPECT_EQ(x.times[0].first, "ring");
  EXPECT_EQ(x.times[0].second[1], seconds(2));
}

// 64K tokens are 16K a rank and 3 steps of 1.344177 ms; 16 times as many: 3 x (16 x 1.342177 + 0.002).
TEST(over_sequences, halves_and_doubles_four_times) {
  const auto c = star(4);
  const auto p = predict(c, problem(4), ring(4), 4, pass_kind::forward);
  const auto x = over_sequences(c, {p, p}, schedule);
  EXPECT_THAT(x.values, ElementsAre("4K", "8K", "16K", "32K", "64K", "128K", "256K", "512K", "1M"));
  EXPECT_EQ(x.asked, 4);
  ASSERT_EQ(x.times.size(), 1u);  // one a schedule
  EXPECT_NEAR(x.times[0].second[4].value(), 3 * step_s, 1e-7);
  EXPECT_NEAR(x.times[0].second[8].value(), 3 * (16 * 1.342177e-3 + 2e-6), 1e-6);
}

TEST(over_sequences, lengths_that_do_not_divide_are_left_out) {
  const auto c = star(4);
  auto a = problem(4);
  a.sequence = 40;  // 20, 10, 5 and 2 have no four equal chunks
  const auto x = over_sequences(c, {predict(c, a, ring(4), 4, pass_kind::forward)}, schedule);
  EXPECT_EQ(x.times[0].second[2], seconds());
  EXPECT_GT(x.times[0].second[3], seconds());
}

// 2 heads of 1 K/V head of 128 in bf16: passing keys
// sends 512 bytes a token, passing queries 1032.
TEST(over_new_tokens, queries_are_passed_where_they_are_fewer_bytes) {
  const auto c = star(4);
  attention a{.heads = 2, .kv_heads = 1, .sequence = 16 << 10, .prefix = 112 << 10};
  std::vector<prediction> ranked;
  for (const auto* name : {"ring", "passq-ring"}) {
    const strategy s{.schedule = name, .rows = 4, .cols = 1, .tokens = token_layout::striped};
    ranked.push_back(predict(c, a, s, 4, pass_kind::forward));
  }
  const auto x = over_new_tokens(c, ranked);
  EXPECT_EQ(x.times.of, "new / all tokens");
  EXPECT_THAT(x.times.values,
              ElementsAre("1", "1/2", "1/4", "1/8", "1/16", "1/32", "1/64", "1/128", "1/256"));
  EXPECT_EQ(x.times.asked, 3);
  EXPECT_DOUBLE_EQ(x.even_bytes, 512.0 / 1032);
  ASSERT_EQ(x.times.times.size(), 2u);
  EXPECT_EQ(x.times.times[0].first, "keys");
  EXPECT_EQ(x.times.times[1].first, "queries");
  EXPECT_EQ(x.times.times[1].second[3].value(),
            predict(c, a, ranked[1].chosen, 4, pass_kind::forward, prediction_method::analytic)
                .time.value());
  EXPECT_EQ(x.times.best(8), "queries");
}

TEST(pass_crossing, the_first_of_queries_is_where_they_are_better_from_there_on) {
  pass_crossing x{.times = {.values = {"1", "1/2", "1/4"},
                            .times = {{"keys", {seconds(1), seconds(1), seconds(1)}},
                                      {"queries", {seconds(.5), seconds(2), seconds(.5)}},
                                      {"both", {seconds(.1), seconds(.1), seconds(.1)}}}}};
  EXPECT_EQ(x.first_of_queries(), 2u);
  x.times.times[1].second[2] = seconds(3);
  EXPECT_EQ(x.first_of_queries(), std::nullopt);
}

}  // namespace crossing_test
}  // namespace attnsim::ask
