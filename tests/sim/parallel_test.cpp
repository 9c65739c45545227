#include "sim/parallel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace attnsim {
namespace parallel_test {

TEST(parallel, every_item_once) {
  std::vector<int> items(1000, 0);
  parallel_for_each(items, [](int& item) { ++item; });
  EXPECT_THAT(items, testing::Each(1));
}

TEST(parallel, no_items) {
  std::vector<int> none;
  parallel_for_each(none, [](int&) { FAIL(); });
}

TEST(parallel, an_exception_ends_the_loop_and_comes_out) {
  std::atomic<int> done = 0;
  const auto run = [&] {
    parallel_for(1'000'000, [&](std::size_t i) {
      if (i == 7) throw std::invalid_argument("seven");
      ++done;
    });
  };
  EXPECT_THROW(run(), std::invalid_argument);
  EXPECT_LT(done, 1'000'000);
}

TEST(parallel, loops_inside_loops) {
  std::atomic<int> done = 0;
  parallel_for(20, [&](std::size_t) { parallel_for(20, [&](std::size_t) { ++done; }); });
  EXPECT_EQ(done, 400);
}

}  // namespace parallel_test
}  // namespace attnsim
