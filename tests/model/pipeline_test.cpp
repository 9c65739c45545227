#include "model/step/pipeline.hpp"

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace {

stage_times equal_stages(std::size_t stages, double forward, double backward, double send = 0) {
  const std::vector<seconds> f(stages, seconds(forward)), b(stages, seconds(backward));
  return {
      .forward = f, .backward = b, .first_forward = f, .last_backward = b, .send = seconds(send)};
}

TEST(pipeline, bubble_of_equal_stages_is_all_but_one_of_a_micro_batch_s_passes) {
  const auto run = run_pipeline(4, 1, 8, equal_stages(4, 1, 2));
  EXPECT_DOUBLE_EQ(run.time.value(), (8 + 4 - 1) * 3);
  EXPECT_DOUBLE_EQ(run.busy[2].value(), 8 * 3);
  EXPECT_DOUBLE_EQ(run.bubble().value(), 3 * 3);
}

TEST(pipeline, interleaved_chunks_divide_the_bubble) {
  const auto run = run_pipeline(4, 2, 8, equal_stages(8, 0.5, 1));
  EXPECT_DOUBLE_EQ(run.time.value(), 8 * 3 + 3 * 3 / 2.0);
}

TEST(pipeline, of_one_rank_is_its_passes) {
  EXPECT_DOUBLE_EQ(run_pipeline(1, 1, 5, equal_stages(1, 1, 2, 100)).time.value(), 15);
}

TEST(pipeline, sends_delay_the_first_and_the_last) {
  // one micro-batch: three sends forward, three back
  EXPECT_DOUBLE_EQ(run_pipeline(4, 1, 1, equal_stages(4, 1, 2, 0.25)).time.value(), 12 + 6 * 0.25);
}

TEST(pipeline, the_slowest_stage_sets_the_pace) {
  auto t = equal_stages(2, 1, 2);
  t.forward[1] = t.first_forward[1] = seconds(2);
  const auto run = run_pipeline(2, 1, 10, t);
  EXPECT_EQ(run.slowest, 1);
  EXPECT_DOUBLE_EQ(run.time.value(), 1 + 10 * 4 + 2);
}

TEST(pipeline, first_and_last_micro_batches_may_take_longer) {
  auto t = equal_stages(1, 1, 2);
  t.first_forward[0] = seconds(5);
  t.last_backward[0] = seconds(7);
  EXPECT_DOUBLE_EQ(run_pipeline(1, 1, 3, t).time.value(), 5 + 2 + 1 + 2 + 1 + 7);
}

TEST(pipeline, early_ranks_hold_more_micro_batches) {
  EXPECT_EQ(chunks_in_flight(4, 1, 8, 0), 4);
  EXPECT_EQ(chunks_in_flight(4, 1, 8, 3), 1);
  EXPECT_EQ(chunks_in_flight(4, 1, 2, 0), 2);
  EXPECT_EQ(chunks_in_flight(4, 2, 8, 0), 11);  // 3 x 2 + 4 before the first backward, and one
}

TEST(pipeline, interleaving_needs_whole_rounds) {
  EXPECT_ERROR(
      run_pipeline(4, 2, 6, equal_stages(8, 1, 2)), infeasible,
      "interleaved stages: 6 micro-batches on 4 pipeline ranks; feasible: a multiple, or one "
      "chunk a rank");
}

}  // namespace
}  // namespace attnsim
