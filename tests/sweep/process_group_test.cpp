// One process; several are tests/cli/sweep_test.cpp's.
#include "sweep/process_group.hpp"

#include <gmock/gmock.h>

#include <map>
#include <stdexcept>

namespace attnsim::sweep {
namespace process_group_test {

TEST(process_group, alone_does_all_points) {
  process_group all;
  ASSERT_TRUE(all.first());
  EXPECT_EQ(all.processes(), 1);
  all.send("for nobody");
  std::map<std::size_t, std::string> rows;
  const auto make_worker = [] { return [](std::size_t p) { return std::string(p, 'x'); }; };
  all.run({1, 3}, 2, make_worker, [&](std::size_t p, const std::string& row) { rows[p] = row; });
  EXPECT_THAT(rows, testing::ElementsAre(testing::Pair(1, "x"), testing::Pair(3, "xxx")));
}

TEST(process_group, lets_failures_out) {
  process_group all;
  const auto make_worker = []() -> worker {
    return [](std::size_t) -> std::string { throw std::runtime_error("no"); };
  };
  EXPECT_THROW(all.run({0}, 2, make_worker, [](auto, const auto&) {}), std::runtime_error);
}

TEST(process_group, has_a_core) {
  EXPECT_GE(available_cores(), 1);
}

}  // namespace process_group_test
}  // namespace attnsim::sweep
