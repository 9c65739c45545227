#include "reproduce/solve.hpp"

#include <gtest/gtest.h>

namespace attnsim::reproduce {
namespace solve_test {

TEST(solve, finds_the_zero_of_a_falling_function) {
  EXPECT_NEAR(solve_falling([](double x) { return 8 / x - 2; }, 0.1, 100), 4, 0.01);
}

TEST(solve, takes_the_nearer_end_where_there_is_no_zero) {
  EXPECT_EQ(solve_falling([](double x) { return -x; }, 1, 10), 1);
  EXPECT_EQ(solve_falling([](double x) { return 1 / x; }, 1, 10), 10);
}

}  // namespace solve_test
}  // namespace attnsim::reproduce
