#include "sim/parallel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "model/config.hpp"
#include "model/cost/local.hpp"
#include "model/schedule/algorithms/schedules.hpp"

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

// 4,128 ranks, each with its own part of the mask: several threads share what the operation's blocks are.
TEST(parallel, kernel_costs_of_many_ranks) {
  const attention a{.heads = 2, .kv_heads = 2, .sequence = 4128 * 16, .mask = mask_kind::causal};
  const auto device = read_device(config_node::load("topologies/devices/h100-sxm5.yaml"));
  const auto program =
      make_schedule({.schedule = "attention2d", .rows = 32, .cols = 129}, a, pass_kind::forward);
  const workload work(program, a, token_layout::zigzag, false);
  const auto* kernel = device.kernel("cudnn");
  const local_costs found(work, device, kernel, run_start::in_sequence),
      asked(work, device, kernel, run_start::in_sequence);
  int kernels = 0;
  for (std::size_t op = 0; op < program.program.size(); ++op) {
    if (!is_kernel(program.program[op].kind)) continue;
    ++kernels;
    found.find_on_all_ranks(op, parallel_for);
    for (int rank = 0; rank < work.ranks(); rank += 43) {
      ASSERT_EQ(found.time(op, rank).value(), asked.time(op, rank).value()) << rank;
    }
  }
  EXPECT_GT(kernels, 0);
}

}  // namespace parallel_test
}  // namespace attnsim
