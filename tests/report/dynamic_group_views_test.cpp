#include "report/dynamic_group_views.hpp"

#include <gtest/gtest.h>

namespace attnsim::report {
namespace {

ask::grouped_batch two_plans() {
  ask::grouped_batch batch{
      .ranks = 4, .rank_tokens = 8, .documents = 3, .tokens = 48, .fixed_ranks = 4};
  batch.fixed.micro_batches = {{{4, {32}, seconds(3)}}, {{4, {8, 8}, seconds(3)}}};
  batch.dynamic.micro_batches = {{{4, {32}, seconds(3)}},
                                 {{1, {8}, seconds(1)}, {1, {8}, seconds(1)}}};
  return batch;
}

TEST(dynamic_group_views, a_row_a_way) {
  EXPECT_EQ(to_table(two_plans()),
            "3 documents of 48 tokens in all, at most 8 a rank, on 4 ranks\n"
            "context parallel  micro-batches          groups  ranks busy     time\n"
            "               4              2          2 of 4       100 %  6.000 s\n"
            "         dynamic              2  2 of 1, 1 of 4        88 %  4.000 s\n"
            "attention alone: 1.50 times as fast with dynamic groups\n");
}

TEST(dynamic_group_views, as_json_and_csv) {
  const auto json = to_json(two_plans());
  EXPECT_EQ(json["schema"], "attnsim.batch.1");
  EXPECT_EQ(json["fixed"]["time_s"], 6.0);
  EXPECT_EQ(json["dynamic"]["busy"], 0.875);
  EXPECT_EQ(json["dynamic"]["groups"][0]["ranks"], 1);
  EXPECT_EQ(json["dynamic"]["groups"][0]["groups"], 2);
  EXPECT_EQ(to_csv(two_plans()),
            "context_parallel,micro_batches,busy,time_s\n4,2,1,6\ndynamic,2,0.875,4\n");
}

}  // namespace
}  // namespace attnsim::report
