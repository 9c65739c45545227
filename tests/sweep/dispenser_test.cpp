#include "sweep/dispenser.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

namespace attnsim::sweep {
namespace dispenser_test {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::size_t> first(std::size_t n) {
  std::vector<std::size_t> points(n);
  std::iota(points.begin(), points.end(), 0);
  return points;
}

TEST(dispenser, hands_out_in_order) {
  dispenser d({3, 5, 8}, 1, {});
  EXPECT_THAT(d.take(), ElementsAre(3));
  EXPECT_THAT(d.take(), ElementsAre(5));
  EXPECT_THAT(d.take(), ElementsAre(8));
  EXPECT_THAT(d.take(), IsEmpty());
}

/// 20 left and 2 workers: at most 20 / (2 x 2) = 5 at once; then 15 / 4 = 3, ..., in the end one.
TEST(dispenser, leaves_work_for_the_others) {
  dispenser d(first(20), 2, {});
  EXPECT_EQ(d.take(100).size(), 5u);
  EXPECT_EQ(d.take(100).size(), 3u);
  EXPECT_EQ(d.take(2).size(), 2u);
  while (d.take(100).size() > 1) {
  }
  EXPECT_EQ(d.take(100).size(), 1u);
}

TEST(dispenser, gives_each_point_to_one_of_many) {
  constexpr std::size_t points = 1000;
  std::multiset<std::size_t> seen;
  dispenser d(first(points), 4, [&](std::size_t p, const std::string& row) {
    EXPECT_EQ(row, std::to_string(p));
    seen.insert(p);
  });
  {
    std::vector<std::jthread> team;
    for (int t = 0; t < 4; ++t)
      team.emplace_back([&] { d.work([](std::size_t p) { return std::to_string(p); }); });
  }
  EXPECT_EQ(seen.size(), points);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), points);
  EXPECT_NO_THROW(d.rethrow_failure());
}

TEST(dispenser, ends_with_the_first_failure) {
  int rows = 0;
  dispenser d(first(10), 1, [&](std::size_t, const std::string&) { ++rows; });
  d.work([](std::size_t p) -> std::string {
    if (p == 3) throw std::runtime_error("point 3");
    return "";
  });
  EXPECT_EQ(rows, 3);
  EXPECT_THAT(d.take(), IsEmpty());
  EXPECT_THROW(d.rethrow_failure(), std::runtime_error);
}

TEST(dispenser, ends_when_a_row_cannot_be_kept) {
  dispenser d(first(10), 1,
              [](std::size_t, const std::string&) { throw std::runtime_error("full"); });
  d.give(0, "");
  EXPECT_THAT(d.take(), IsEmpty());
  EXPECT_THROW(d.rethrow_failure(), std::runtime_error);
}

}  // namespace dispenser_test
}  // namespace attnsim::sweep
