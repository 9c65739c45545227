#include "ask/crossing.hpp"

#include <gmock/gmock.h>

#include "tests/ring_on_star.hpp"

namespace attnsim::ask {
namespace {

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

}  // namespace
}  // namespace attnsim::ask
