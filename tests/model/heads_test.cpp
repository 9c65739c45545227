#include "model/attention/heads.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace heads_test {

constexpr head_range heads(std::int64_t queries, std::int64_t keys) {
  return {0, queries, 0, keys};
}

TEST(share_of, gives_whole_groups_while_there_are_key_heads) {
  EXPECT_EQ(share_of(heads(32, 8), 4, 0), (head_range{0, 8, 0, 2}));
  EXPECT_EQ(share_of(heads(32, 8), 4, 3), (head_range{24, 8, 6, 2}));
}

TEST(share_of, splits_groups_over_copies_of_a_key_head) {
  EXPECT_EQ(share_of(heads(32, 8), 16, 5), (head_range{10, 2, 2, 1}));
}

TEST(share_of, differs_by_one_head_at_most) {
  EXPECT_EQ(share_of(heads(5, 5), 4, 0), (head_range{0, 2, 0, 2}));
  EXPECT_EQ(share_of(heads(5, 5), 4, 1), (head_range{2, 1, 2, 1}));
  EXPECT_EQ(share_of(heads(5, 5), 4, 3), (head_range{4, 1, 4, 1}));
  EXPECT_EQ(share_of(heads(10, 2), 4, 1), (head_range{3, 2, 0, 1}));  // 5 heads as 3 and 2
}

TEST(share_of, nests) {
  const auto of_tensor_parallel = share_of(heads(64, 8), 2, 1);
  EXPECT_EQ(share_of(of_tensor_parallel, 4, 2), (head_range{48, 8, 6, 1}));
}

TEST(can_share, needs_a_head_for_all) {
  EXPECT_TRUE(can_share(heads(40, 8), 40));
  EXPECT_FALSE(can_share(heads(40, 8), 80));
  EXPECT_FALSE(can_share(heads(40, 8), 12));  // 8 key heads over 12 ranks
  EXPECT_TRUE(can_share(heads(40, 8), 5));    // unevenly: 2, 2, 2, 1, 1
}

// DeepSpeed#4674: 48 heads, 64 wanted. verl#1226: 40 query and 8 K/V heads.
TEST(even_degrees, of_reported_models) {
  EXPECT_EQ(even_degrees(heads(48, 48), 64), "1, 2, 3, 4, 6, 8, 12, 16, 24, 48");
  EXPECT_EQ(even_degrees(heads(40, 8), 64), "1, 2, 4, 8, 40");
}

}  // namespace heads_test
}  // namespace attnsim
