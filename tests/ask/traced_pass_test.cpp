#include "ask/traced_pass.hpp"

#include <gtest/gtest.h>

#include "sim/simulator.hpp"
#include "tests/ring_on_star.hpp"

namespace attnsim::ask {
namespace traced_pass_test {

/// The simulated pass of a rank, each operation `times` as long.
rank_timeline measured(const timeline& t, double times) {
  auto rank = t.ranks[0];
  for (auto& i : rank.intervals) i.end = i.start + (i.end - i.start) * times;
  rank.end = rank.end * times;
  return rank;
}

class a_ring_of_two : public testing::Test {
 protected:
  const cluster c = star(2);
  const placed_schedule ring_of_two{c, problem(2), ring(2), pass_kind::forward};
  const timeline simulated = simulate(ring_of_two, {.record = true});
};

TEST_F(a_ring_of_two, as_simulated_has_no_error) {
  const auto points = compare_pass(ring_of_two, 1, {measured(simulated, 1)}, "all");
  ASSERT_EQ(points.size(), simulated.ranks[0].intervals.size() + 1);
  for (const auto& p : points) {
    if (p.predicted > seconds()) {
      EXPECT_EQ(p.error(), 0) << p.what;
    }
  }
  EXPECT_EQ(points.back().part, "schedules");
  EXPECT_EQ(points.back().what, "all");
  EXPECT_EQ(points.back().measured, simulated.duration());
}

TEST_F(a_ring_of_two, medians_of_the_repeats_count) {
  const auto points =
      compare_pass(ring_of_two, 0,
                   {measured(simulated, 1), measured(simulated, 4), measured(simulated, 2)}, "all");
  EXPECT_EQ(points.back().measured, 2 * simulated.duration());
  const auto& first = simulated.ranks[0].intervals[0];
  EXPECT_EQ(points[0].measured, 2 * (first.end - first.start));
}

TEST_F(a_ring_of_two, operations_are_of_their_part_with_their_uncertainty) {
  const auto points = compare_pass(ring_of_two, 0, {measured(simulated, 1)}, "all");
  const auto& u = c.device.uncertainty;
  std::size_t transfers = 0;
  for (const auto& p : points) {
    transfers += p.part == "transfers";
    const auto share = p.part == "kernels" ? u.compute : u.communication;
    if (p.part != "schedules") {
      EXPECT_EQ(p.high, p.predicted * (1 + share)) << p.what;
    }
  }
  EXPECT_EQ(transfers, 1u);
  EXPECT_EQ(points.back().high,
            points.back().predicted * (1 + std::max(u.compute, u.communication)));
}

TEST_F(a_ring_of_two, what_was_not_seen_is_left_out) {
  auto seen = measured(simulated, 1);
  seen.intervals.resize(1);
  EXPECT_EQ(compare_pass(ring_of_two, 0, {seen}, "all").size(), 2u);
}

}  // namespace traced_pass_test
}  // namespace attnsim::ask
