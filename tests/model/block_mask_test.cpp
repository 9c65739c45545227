#include "model/attention/block_mask.hpp"

#include <random>
#include <stdexcept>

#include <gmock/gmock.h>

namespace attnsim {
namespace block_mask_test {

using testing::ThrowsMessage;

std::int64_t count_one_by_one(const block_mask& mask, std::int64_t rows, std::int64_t cols) {
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) pairs += visible(mask, i, j);
  }
  return pairs;
}

TEST(visible_pairs, full_is_the_whole_block) {
  EXPECT_EQ(visible_pairs({}, 3, 5), 15);
}

TEST(visible_pairs, causal_is_a_triangle_with_its_diagonal) {
  EXPECT_EQ(visible_pairs({.causal = true}, 4, 4), 1 + 2 + 3 + 4);
}

TEST(visible_pairs, strictly_causal_loses_the_diagonal) {
  // Striped over 8 ranks: queries 0, 8, 16, 24 against keys 1, 9, 17, 25.
  const block_mask mask{
      .causal = true, .query_first = 0, .query_stride = 8, .key_first = 1, .key_stride = 8};
  EXPECT_EQ(visible_pairs(mask, 4, 4), 0 + 1 + 2 + 3);
}

TEST(visible_pairs, bottom_right_aligned) {
  // 2 rows at positions 3, 4 of 5 keys.
  EXPECT_EQ(visible_pairs({.causal = true, .query_first = 3}, 2, 5), 4 + 5);
}

TEST(visible_pairs, staircase_of_fine_queries_and_coarse_keys) {
  // Queries 2..7, keys 1, 4, 7: one key for queries 2, 3, two for 4, 5, 6, three for 7.
  const block_mask mask{.causal = true, .query_first = 2, .key_first = 1, .key_stride = 3};
  EXPECT_EQ(visible_pairs(mask, 6, 3), 1 + 1 + 2 + 2 + 2 + 3);
}

TEST(visible_pairs, window_keeps_the_last_positions) {
  // Rows see 1, 2, 3, 3, 3 keys.
  EXPECT_EQ(visible_pairs({.causal = true, .window = 3}, 5, 5), 12);
}

TEST(visible_pairs, block_of_the_past_is_full_and_of_the_future_empty) {
  EXPECT_EQ(visible_pairs({.causal = true, .query_first = 100}, 7, 9), 63);
  EXPECT_EQ(visible_pairs({.causal = true, .key_first = 100}, 7, 9), 0);
}

TEST(visible_pairs, no_rows_or_no_columns_have_no_pairs) {
  EXPECT_EQ(visible_pairs({}, 0, 9), 0);
  EXPECT_EQ(visible_pairs({.causal = true}, 9, 0), 0);
}

TEST(visible_pairs, agrees_with_counting_on_random_blocks) {
  std::mt19937_64 random{1};
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>{low, high}(random);
  };
  for (int trial = 0; trial < 20000; ++trial) {
    const block_mask mask{.causal = true,
                          .query_first = draw(-60, 60),
                          .query_stride = draw(1, 9),
                          .key_first = draw(-60, 60),
                          .key_stride = draw(1, 9),
                          .window = draw(0, 1) * draw(1, 40)};
    const auto rows = draw(0, 24);
    const auto cols = draw(0, 24);
    ASSERT_EQ(visible_pairs(mask, rows, cols), count_one_by_one(mask, rows, cols))
        << mask.query_first << '+' << mask.query_stride << "i, " << mask.key_first << '+'
        << mask.key_stride << "j, window " << mask.window << ", " << rows << " x " << cols;
  }
}

TEST(visible_pairs, long_sequences_stay_exact) {
  // n (n + 1) / 2 with n = 2^31.
  const std::int64_t n = std::int64_t{1} << 31;
  EXPECT_EQ(visible_pairs({.causal = true}, n, n), (n / 2) * (n + 1));
  // 2^40 tokens with a window of w = 2^20: every row w keys, less the w (w - 1) / 2 missing in the
  // first rows.
  const std::int64_t tokens = std::int64_t{1} << 40;
  const std::int64_t window = std::int64_t{1} << 20;
  EXPECT_EQ(visible_pairs({.causal = true, .window = window}, tokens, tokens),
            tokens * window - window / 2 * (window - 1));
}

TEST(visible_pairs, refuses_what_it_cannot_count) {
  const std::int64_t tokens = std::int64_t{1} << 40;
  EXPECT_THAT(
      [&] { visible_pairs({}, tokens, tokens); },
      ThrowsMessage<std::overflow_error>(
          "block mask: 1099511627776 x 1099511627776 tokens have 2^63 visible pairs or more"));
  EXPECT_THAT([] { visible_pairs({.causal = true, .key_stride = 0}, 1, 1); },
              ThrowsMessage<std::invalid_argument>("block mask: stride 0 is not positive"));
  EXPECT_THAT([] { visible_pairs({.causal = true, .window = -1}, 1, 1); },
              ThrowsMessage<std::invalid_argument>("block mask: window -1 is negative"));
}

}  // namespace block_mask_test
}  // namespace attnsim
