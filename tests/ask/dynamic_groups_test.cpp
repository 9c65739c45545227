#include "ask/dynamic_groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace {

question training() {
  return {.cluster = "dgx-h100", .ranks = 8, .heads = 32, .kv_heads = 8};
}

grouped_batch grouped(std::vector<std::int64_t> lengths, std::int64_t rank_tokens) {
  const auto q = training();
  return group_documents(q, cluster_of(q), std::move(lengths), rank_tokens);
}

std::vector<std::int64_t> all_documents(const batch_plan& plan) {
  std::vector<std::int64_t> all;
  for (const auto& batch : plan.micro_batches) {
    for (const auto& group : batch)
      all.insert(all.end(), group.documents.begin(), group.documents.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

// 64K on 8 ranks of 8K, 16K on two, 4K on one, two of those in a bin.
TEST(dynamic_groups, are_the_smallest_that_have_room) {
  const std::vector<std::int64_t> lengths{65536, 16384, 16384, 4096, 4096, 4096, 4096, 4096, 4096};
  const auto batch = grouped(lengths, 8192);
  EXPECT_EQ(batch.ranks, 8);
  EXPECT_EQ(batch.fixed_ranks, 8);
  EXPECT_EQ(batch.tokens, 65536 + 2 * 16384 + 6 * 4096);
  ASSERT_EQ(batch.dynamic.micro_batches.size(), 2u);
  EXPECT_EQ(batch.dynamic.micro_batches[0].size(), 1u);
  EXPECT_EQ(batch.dynamic.micro_batches[0][0].ranks, 8);
  std::vector<int> ranks;
  for (const auto& group : batch.dynamic.micro_batches[1]) ranks.push_back(group.ranks);
  EXPECT_EQ(ranks, (std::vector<int>{2, 2, 1, 1, 1}));
  auto sorted = lengths;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(all_documents(batch.dynamic), sorted);
  EXPECT_EQ(all_documents(batch.fixed), sorted);
  EXPECT_LT(batch.dynamic.time(), batch.fixed.time());
}

TEST(dynamic_groups, never_have_more_tokens_than_room_nor_more_ranks_than_there_are) {
  std::vector<std::int64_t> lengths;
  for (int i = 1; i <= 60; ++i) lengths.push_back(1 + i * i * 977 % 60000);
  const auto batch = grouped(lengths, 8192);
  for (const auto* plan : {&batch.fixed, &batch.dynamic}) {
    for (const auto& micro : plan->micro_batches) {
      int ranks = 0;
      for (const auto& group : micro) {
        std::int64_t tokens = 0;
        for (const auto length : group.documents) tokens += length;
        EXPECT_LE(tokens, group.ranks * 8192);
        EXPECT_LE(group.time, micro.front().time);
        ranks += group.ranks;
      }
      EXPECT_LE(ranks, 8);
    }
    EXPECT_GT(plan->busy(8), 0);
    EXPECT_LE(plan->busy(8), 1);
  }
}

// Two micro-batches of 3 and 1 seconds; ranks are busy 2 x 3 + 1 x 2 of 4 x 4 and 4 x 1 of them.
TEST(dynamic_groups, end_with_the_slowest) {
  const batch_plan plan{{{{2, {}, seconds(3)}, {1, {}, seconds(2)}}, {{4, {}, seconds(1)}}}};
  EXPECT_EQ(plan.time(), seconds(4));
  EXPECT_EQ(plan.busy(4), (2 * 3 + 1 * 2 + 4 * 1) / 16.0);
}

TEST(dynamic_groups, of_equal_documents_are_all_alike) {
  const auto batch = grouped(std::vector<std::int64_t>(16, 8192), 8192);
  EXPECT_EQ(batch.fixed_ranks, 1);
  EXPECT_EQ(batch.dynamic.time(), batch.fixed.time());
  EXPECT_EQ(megatron_settings(batch),
            "--context-parallel-size 1\n--sequence-packing-scheduler dp_balanced\n"
            "--max-seqlen-per-dp-cp-rank 8192\n");
}

TEST(dynamic_groups, as_megatrons_settings) {
  EXPECT_EQ(
      megatron_settings(grouped({65536, 8192, 8192, 8192, 8192, 8192, 8192, 8192, 8192}, 8192)),
      "--dynamic-context-parallel\n--sequence-packing-scheduler default_dynamic_cp\n"
      "--max-seqlen-per-dp-cp-rank 8192\n");
}

TEST(dynamic_groups, need_room_for_the_longest) {
  EXPECT_ERROR(
      grouped({65537}, 8192), infeasible,
      "rank-tokens: '8192': the longest document has 65537 tokens and needs 16 ranks, there "
      "are 8; feasible: 8193 and more");
  EXPECT_ERROR(grouped({8}, 1), input_error,
               "rank-tokens: '1': expected a whole number of at least 2");
}

}  // namespace
}  // namespace attnsim::ask
