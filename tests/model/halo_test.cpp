#include "model/attention/halo.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace {

halo of_window(std::int64_t window) {
  return halo_of({.heads = 1, .kv_heads = 1, .sequence = 32, .window = window}, 4);
}

// Chunks of 8: the first token of the last one sees 23 to 25 more at windows of 24 to 26, but there are 24.
TEST(halo, is_the_window_but_the_token_itself) {
  EXPECT_EQ(of_window(0), (halo{0, 0}));
  EXPECT_EQ(of_window(1), (halo{0, 0}));
  EXPECT_EQ(of_window(2), (halo{0, 1}));
  EXPECT_EQ(of_window(8), (halo{0, 7}));
  EXPECT_EQ(of_window(9), (halo{1, 0}));
  EXPECT_EQ(of_window(20), (halo{2, 3}));
  EXPECT_EQ(of_window(24), (halo{2, 7}));
  EXPECT_EQ(of_window(25), (halo{3, 0}));
  EXPECT_EQ(of_window(26), (halo{3, 0}));
}

TEST(halo, reaches_one_chunk_more_where_tokens_are_left) {
  EXPECT_EQ((halo{2, 0}).reach(), 2);
  EXPECT_EQ((halo{2, 1}).reach(), 3);
}

}  // namespace
}  // namespace attnsim
