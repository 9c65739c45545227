#include "model/attention/tokens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

namespace attnsim {
namespace tokens_test {

attention causal(std::int64_t sequence, std::int64_t window = 0, std::int64_t padding = 0) {
  return {.heads = 1, .kv_heads = 1, .sequence = sequence, .padding = padding, .window = window};
}

std::vector<std::int64_t> positions(const token_set& set) {
  std::vector<std::int64_t> result;
  for (const auto& r : set) {
    for (std::int64_t i = 0; i < r.count; ++i) result.push_back(r.first + i * r.stride);
  }
  return result;
}

TEST(tokens, layouts_of_16_tokens_over_4_ranks) {
  EXPECT_EQ(positions(tokens_of(token_layout::contiguous, 16, 4, 1)),
            (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(positions(tokens_of(token_layout::striped, 16, 4, 1)),
            (std::vector<std::int64_t>{1, 5, 9, 13}));
  // Eight pieces of two tokens; rank 1 has pieces 1 and 6.
  EXPECT_EQ(positions(tokens_of(token_layout::zigzag, 16, 4, 1)),
            (std::vector<std::int64_t>{2, 3, 12, 13}));
}

TEST(tokens, every_layout_deals_out_every_token_once) {
  for (const auto layout :
       {token_layout::contiguous, token_layout::zigzag, token_layout::striped}) {
    std::vector<std::int64_t> all;
    for (int chunk = 0; chunk < 6; ++chunk) {
      const auto part = positions(tokens_of(layout, 48, 6, chunk));
      all.insert(all.end(), part.begin(), part.end());
    }
    std::sort(all.begin(), all.end());
    for (std::int64_t i = 0; i < 48; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
  }
}

TEST(tokens, ascending_joins_interleaved_strides) {
  // Chunks 1, 3, 5, 7 of 8 striped chunks of 32 tokens are all odd tokens.
  token_set odd;
  for (const int chunk : {1, 3, 5, 7})
    odd.push_back(tokens_of(token_layout::striped, 32, 8, chunk)[0]);
  EXPECT_EQ(ascending(odd), (token_set{{1, 16, 2}}));
  // All zigzag chunks together are the sequence.
  token_set zigzag;
  for (int chunk = 0; chunk < 4; ++chunk) {
    for (const auto& r : tokens_of(token_layout::zigzag, 16, 4, chunk)) zigzag.push_back(r);
  }
  EXPECT_EQ(ascending(zigzag), (token_set{{0, 16, 1}}));
}

TEST(kernel_tiles, zigzag_pairs_take_one_or_one_call) {
  const auto chunk = [](int i) { return tokens_of(token_layout::zigzag, 64, 4, i); };
  const auto a = causal(64);
  // Own pair: ascending tokens against themselves, one causal call.
  const auto own = kernel_tiles(chunk(1), chunk(1), a, false);
  ASSERT_EQ(own.size(), 1u);
  EXPECT_TRUE(own[0].mask.causal);
  // Earlier keys: all rows see the first half of them only. Later keys: only the second half of the rows, all of them.
  const auto earlier = kernel_tiles(chunk(2), chunk(1), a, false);
  ASSERT_EQ(earlier.size(), 1u);
  EXPECT_FALSE(earlier[0].mask.causal);
  EXPECT_EQ(std::tuple(earlier[0].rows, earlier[0].cols, earlier[0].col_first),
            std::tuple(16, 8, 0));
  const auto later = kernel_tiles(chunk(1), chunk(2), a, false);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(std::tuple(later[0].rows, later[0].row_first, later[0].cols), std::tuple(8, 8, 16));
}

TEST(kernel_tiles, contiguous_keys_after_the_queries_take_no_call) {
  const auto a = causal(64);
  EXPECT_TRUE(kernel_tiles({{0, 16, 1}}, {{16, 16, 1}}, a, false).empty());
  // Offset causal: 16 rows at 16..31 against keys 0..31 is one call.
  EXPECT_EQ(kernel_tiles({{16, 16, 1}}, {{0, 32, 1}}, a, false).size(), 1u);
}

TEST(kernel_tiles, unequal_strides_are_split_unless_the_kernel_takes_staircases) {
  const auto a = causal(64);
  // Queries of stride 8 against keys of stride 2: four calls of stride 8.
  EXPECT_EQ(kernel_tiles({{3, 8, 8}}, {{1, 32, 2}}, a, false).size(), 4u);
  EXPECT_EQ(kernel_tiles({{3, 8, 8}}, {{1, 32, 2}}, a, true).size(), 1u);
}

TEST(kernel_tiles, gathered_blocks_under_a_full_mask_are_one_call) {
  attention a = causal(64);
  a.mask = mask_kind::full;
  EXPECT_EQ(
      kernel_tiles({{0, 8, 8}, {1, 8, 8}}, {{0, 8, 8}, {4, 8, 8}, {6, 8, 8}}, a, false).size(), 1u);
}

/// Random blocks: every visible pair is in exactly one tile, where the tile's mask shows it.
TEST(kernel_tiles, cover_every_visible_pair_once) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 500; ++round) {
    const int chunks = 1 + pick(6);
    const std::int64_t sequence = 2 * chunks * (1 + pick(5));
    const auto layout = static_cast<token_layout>(pick(3));
    attention a = causal(sequence, pick(3) == 0 ? 1 + pick(static_cast<int>(sequence)) : 0);
    a.padding = pick(2) == 0 ? pick(static_cast<int>(sequence)) : 0;
    if (a.window > 0 && pick(2) == 0) a.kept_first = 1 + pick(6);
    const auto block = [&] {
      token_set set;
      for (int i = 0, first = pick(chunks), n = 1 + pick(chunks); i < n; ++i) {
        for (const auto& r : tokens_of(layout, sequence, chunks, (first + i) % chunks))
          set.push_back(r);
      }
      return pick(2) ? ascending(set) : set;
    };
    const auto queries = block(), keys = block();
    const auto q = positions(queries), k = positions(keys);
    std::vector<std::vector<int>> counted(q.size(), std::vector<int>(k.size()));
    std::int64_t pairs = 0;
    for (const auto& t : kernel_tiles(queries, keys, a, pick(2) == 0)) {
      pairs += t.pairs();
      for (std::int64_t i = 0; i < t.rows; ++i) {
        for (std::int64_t j = 0; j < t.cols; ++j) {
          if (!visible(t.mask, i, j)) continue;
          ++counted[static_cast<std::size_t>(t.row_first + i * t.row_step)]
                   [static_cast<std::size_t>(t.col_first + j * t.col_step)];
        }
      }
    }
    std::int64_t expected_pairs = 0;
    const auto end = sequence - a.padding;
    for (std::size_t i = 0; i < q.size(); ++i) {
      for (std::size_t j = 0; j < k.size(); ++j) {
        const bool near = a.window == 0 || k[j] > q[i] - a.window || k[j] < a.kept_first;
        const bool seen = q[i] < end && k[j] < end && k[j] <= q[i] && near;
        ASSERT_EQ(counted[i][j], seen ? 1 : 0)
            << "round " << round << " query " << q[i] << " key " << k[j];
        expected_pairs += seen;
      }
    }
    EXPECT_EQ(pairs, expected_pairs);
    EXPECT_EQ(visible_pairs(queries, keys, a), expected_pairs);
  }
}

/// Where a tile is and how much of it is visible.
auto shape_of(const tile& t) {
  return std::tuple(t.row_first, t.rows, t.row_step, t.col_first, t.cols, t.col_step, t.mask.causal,
                    t.pairs());
}

bool side_by_side(const tile& left, const tile& right) {
  return !left.mask.causal && !right.mask.causal && left.rows == right.rows &&
         left.col_step * right.col_step == 1 && left.col_first + left.cols == right.col_first;
}

bool one_below_the_other(const tile& above, const tile& below) {
  return !above.mask.causal && !below.mask.causal && above.row_step * below.row_step == 1 &&
         above.row_first + above.rows == below.row_first && above.col_first == below.col_first &&
         above.cols == below.cols && above.col_step == below.col_step;
}

/// The calls of each pair of ranges by itself, then those side by side and one below the other joined.
std::vector<tile> joined_pairs(const token_set& queries, const token_set& keys, const attention& a,
                               bool staircase) {
  std::vector<tile> all;
  std::int64_t row = 0;
  for (const auto& q : joined(queries)) {
    std::vector<tile> of_row;
    std::int64_t col = 0;
    for (const auto& k : joined(keys)) {
      for (auto t : kernel_tiles({q}, {k}, a, staircase)) {
        t.row_first += row;
        t.col_first += col;
        if (!of_row.empty() && side_by_side(of_row.back(), t)) {
          of_row.back().cols += t.cols;
        } else {
          of_row.push_back(t);
        }
      }
      col += k.count;
    }
    for (const auto& t : of_row) {
      const auto above = std::find_if(all.begin(), all.end(), [&](const tile& earlier) {
        return one_below_the_other(earlier, t);
      });
      if (above == all.end()) {
        all.push_back(t);
      } else {
        above->rows += t.rows;
      }
    }
    row += q.count;
  }
  return all;
}

TEST(kernel_tiles, of_gathered_chunks_are_those_of_their_pairs_joined) {
  std::mt19937 random(11);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 400; ++round) {
    const int rows = 2 + pick(6), cols = 2 + pick(6), ranks = rows * cols;
    const auto layout = static_cast<token_layout>(pick(4));
    const auto a = causal(ranks * 4);
    const auto gathered = [&](int first, int step, int n) {
      token_set set;
      for (int i = 0; i < n; ++i) {
        for (const auto& r : tokens_of(layout, a.sequence, ranks, first + i * step))
          set.push_back(r);
      }
      return pick(3) == 0 ? ascending(set) : set;
    };
    const auto queries = gathered(pick(rows) * cols, 1, cols),
               keys = gathered(pick(cols), cols, rows);
    const bool staircase = pick(2) == 0;
    const auto tiles = kernel_tiles(queries, keys, a, staircase),
               of_pairs = joined_pairs(queries, keys, a, staircase);
    ASSERT_EQ(tiles.size(), of_pairs.size()) << "round " << round;
    for (std::size_t i = 0; i < tiles.size(); ++i)
      ASSERT_EQ(shape_of(tiles[i]), shape_of(of_pairs[i])) << "round " << round;
  }
}

// 16 rows at 16..31 against keys 0..15 through a window of 4: rows 16, 17 and 18 see the keys 13, 14 and 15.
TEST(kernel_tiles, of_a_window_have_only_rows_and_columns_that_it_reaches) {
  attention a = causal(32);
  a.window = 4;
  const auto before = kernel_tiles({{16, 16, 1}}, {{0, 16, 1}}, a, false);
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(std::tuple(before[0].row_first, before[0].rows), std::tuple(0, 3));
  EXPECT_EQ(std::tuple(before[0].col_first, before[0].cols), std::tuple(13, 3));
  EXPECT_EQ(before[0].pairs(), 3 + 2 + 1);
  EXPECT_TRUE(kernel_tiles({{16, 16, 1}}, {{0, 13, 1}}, a, false).empty());
}

// Rows 16..31 through a window of 4 that keeps the first 2: all of them see both, which is one full call. Rows 0..15 see token 0
// behind their window from row 4 on, token 1 from row 5 on: 12 + 11 pairs beside 16 x 4 - 6 of the window.
TEST(kernel_tiles, of_first_tokens_that_a_window_keeps) {
  attention a = causal(32);
  a.window = 4;
  a.kept_first = 2;
  const auto later = kernel_tiles({{16, 16, 1}}, {{0, 13, 1}}, a, false);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(std::tuple(later[0].rows, later[0].cols, later[0].mask.causal),
            std::tuple(16, 2, false));
  EXPECT_FALSE(later[0].adds_rows);
  const auto own = kernel_tiles({{0, 16, 1}}, {{0, 16, 1}}, a, false);
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0].pairs(), 16 * 4 - 6);
  EXPECT_EQ(std::tuple(own[1].row_first, own[1].rows, own[1].cols), std::tuple(4, 12, 2));
  EXPECT_EQ(own[1].pairs(), 12 + 11);
  EXPECT_TRUE(own[1].adds_rows);
}

// Zigzag over 2 groups of 3 ranks: each half of 6 tokens is cut into parts of 4, the middle one from both pieces.
TEST(slice, crosses_ranges) {
  const token_set zigzag{{0, 6, 1}, {18, 6, 1}};
  EXPECT_EQ(slice(zigzag, 0, 4), (token_set{{0, 4, 1}}));
  EXPECT_EQ(slice(zigzag, 4, 4), (token_set{{4, 2, 1}, {18, 2, 1}}));
  EXPECT_EQ(slice(zigzag, 8, 4), (token_set{{20, 4, 1}}));
  EXPECT_EQ(slice({{1, 8, 3}}, 2, 3), (token_set{{7, 3, 3}}));
}

// Zigzag over 4 ranks needs 8 pieces; in parts of 2 the halves of a chunk are whole, in parts of 4 each is cut in two.
TEST(layout_unit, of_chunks_in_parts) {
  EXPECT_EQ(layout_unit(token_layout::zigzag, 4), 8);
  EXPECT_EQ(layout_unit(token_layout::zigzag, 4, 2), 4);
  EXPECT_EQ(layout_unit(token_layout::zigzag, 6, 3), 12);
  EXPECT_EQ(layout_unit(token_layout::striped, 8, 4), 8);
}

// 12 tokens in documents of 5, 3 and 4: triangles of 15, 6 and 10 pairs; a full mask has 25 + 9 + 16.
TEST(documents, see_themselves_only) {
  attention a{.heads = 1, .kv_heads = 1, .sequence = 12, .documents = {5, 3, 4}};
  const token_set all{{0, 12, 1}};
  EXPECT_EQ(visible_pairs(all, all, a), 15 + 6 + 10);
  a.mask = mask_kind::full;
  EXPECT_EQ(visible_pairs(all, all, a), 25 + 9 + 16);
  // Tokens 4 to 7 are the last one of the first document and all of the second.
  EXPECT_EQ(visible_pairs({{4, 4, 1}}, all, a), 5 + 9);
}

// The same under strides: tokens 1, 4, 7, 10 against 0, 3, 6, 9; visible are (1,0) (4,0) (4,3) (7,6) (10,9).
TEST(documents, cut_strided_ranges) {
  const attention a{.heads = 1, .kv_heads = 1, .sequence = 12, .documents = {5, 3, 4}};
  EXPECT_EQ(visible_pairs({{1, 4, 3}}, {{0, 4, 3}}, a), 5);
  std::int64_t pairs = 0;
  for (const auto& t : kernel_tiles({{1, 4, 3}}, {{0, 4, 3}}, a, false)) pairs += t.pairs();
  EXPECT_EQ(pairs, 5);
}

// Two documents of 4 on 2 ranks: four pieces of one token each, of which rank 0 has the first and the last.
TEST(documents, zigzag_each) {
  const attention a{.heads = 1, .kv_heads = 1, .sequence = 8, .documents = {4, 4}};
  EXPECT_EQ(positions(tokens_of(token_layout::zigzag, a, 2, 0)),
            (std::vector<std::int64_t>{0, 3, 4, 7}));
  EXPECT_EQ(positions(tokens_of(token_layout::zigzag, a, 2, 1)),
            (std::vector<std::int64_t>{1, 2, 5, 6}));
  EXPECT_EQ(positions(tokens_of(token_layout::zigzag_stream, a, 2, 0)),
            (std::vector<std::int64_t>{0, 1, 6, 7}));
  const attention padded{
      .heads = 1, .kv_heads = 1, .sequence = 12, .padding = 4, .documents = {4, 4}};
  EXPECT_EQ(positions(tokens_of(token_layout::zigzag, padded, 2, 0)),
            (std::vector<std::int64_t>{0, 3, 4, 7, 8, 11}));
}

TEST(documents, zigzag_of_each_is_equal_work) {
  const attention a{
      .heads = 1, .kv_heads = 1, .sequence = 65536, .documents = {40000, 20000, 5536}};
  const token_set all{{0, 65536, 1}};
  const auto of_rank = [&](token_layout layout, int rank) {
    return visible_pairs(tokens_of(layout, a, 8, rank), all, a);
  };
  for (int rank = 1; rank < 8; ++rank)
    EXPECT_EQ(of_rank(token_layout::zigzag, rank), of_rank(token_layout::zigzag, 0));
  EXPECT_NE(of_rank(token_layout::zigzag_stream, 0), of_rank(token_layout::zigzag_stream, 7));
}

// Rank 1 of 2 and documents of 8 and 4: pieces of 2 and 1, tokens 2 to 5 and 9 to 10. Against themselves a causal call each;
// against rank 0's 0, 1, 6, 7 and 8, 11 all rows see the first piece and none the last.
TEST(documents, of_zigzag_take_a_call_each) {
  const attention a{.heads = 1, .kv_heads = 1, .sequence = 12, .documents = {8, 4}};
  const auto own = tokens_of(token_layout::zigzag, a, 2, 1);
  const auto other = tokens_of(token_layout::zigzag, a, 2, 0);
  const auto self = kernel_tiles(own, own, a, false);
  ASSERT_EQ(self.size(), 2u);
  EXPECT_EQ(self[0].rows, 4);
  EXPECT_EQ(self[0].pairs(), 10);
  EXPECT_EQ(self[1].row_first, 4);
  EXPECT_EQ(self[1].col_first, 4);
  EXPECT_EQ(self[1].rows, 2);
  EXPECT_EQ(self[1].pairs(), 3);
  const auto before = kernel_tiles(own, other, a, false);
  ASSERT_EQ(before.size(), 2u);
  EXPECT_EQ(before[0].rows, 4);
  EXPECT_EQ(before[0].cols, 2);
  EXPECT_EQ(before[0].pairs(), 8);
  EXPECT_EQ(before[1].col_first, 4);
  EXPECT_EQ(before[1].pairs(), 2);
}

// 8 cached and 4 new tokens over 2 ranks: both are laid out by themselves, queries begin at 8.
TEST(prefix, is_laid_out_by_itself_before_the_new_tokens) {
  const attention a{.heads = 1, .kv_heads = 1, .sequence = 4, .prefix = 8};
  EXPECT_EQ(positions(tokens_of(token_layout::zigzag, a, 2, 1)),
            (std::vector<std::int64_t>{9, 10}));
  EXPECT_EQ(positions(keys_of(token_layout::zigzag, a, 2, 1)),
            (std::vector<std::int64_t>{2, 3, 4, 5, 9, 10}));
  EXPECT_EQ(positions(keys_of(token_layout::contiguous, a, 2, 0)),
            (std::vector<std::int64_t>{0, 1, 2, 3, 8, 9}));
  EXPECT_EQ(keys_of(token_layout::striped, a, 2, 1), (token_set{{1, 6, 2}}));
}

// 4 rows see 8 cached keys and 1 + 2 + 3 + 4 of their own.
TEST(prefix, is_seen_by_all_new_tokens) {
  attention a{.heads = 1, .kv_heads = 1, .sequence = 4, .prefix = 8};
  EXPECT_EQ(visible_pairs(a), 4 * 8 + 10);
  a.padding = 1;
  EXPECT_EQ(visible_pairs(a), 3 * 8 + 6);
  a.padding = 0;
  a.window = 3;
  EXPECT_EQ(visible_pairs(a), 4 * 3);
  a.mask = mask_kind::full;
  a.window = 0;
  EXPECT_EQ(visible_pairs(a), 4 * 12);
}

// The own chunk with the cached part of it is one call, aligned at the bottom right.
TEST(prefix, and_the_own_new_tokens_are_one_call) {
  const attention a{.heads = 1, .kv_heads = 1, .sequence = 8, .prefix = 16};
  for (const auto layout :
       {token_layout::contiguous, token_layout::zigzag, token_layout::striped}) {
    const auto tiles = kernel_tiles(tokens_of(layout, a, 2, 1), keys_of(layout, a, 2, 1), a, false);
    ASSERT_EQ(tiles.size(), 1u) << name_of(layout);
    EXPECT_EQ(tiles[0].rows, 4);
    EXPECT_EQ(tiles[0].cols, 12);
    EXPECT_EQ(tiles[0].pairs(), 4 * 8 + 10);
  }
}

TEST(another_sequence, has_keys_of_its_own) {
  const attention a{.heads = 1,
                    .kv_heads = 1,
                    .sequence = 6,
                    .padding = 1,
                    .kv_sequence = 4,
                    .mask = mask_kind::full};
  EXPECT_EQ(keys_of(token_layout::contiguous, a, 2, 1), (token_set{{2, 2, 1}}));
  EXPECT_EQ(visible_pairs(a), 5 * 4);
}

}  // namespace tokens_test
}  // namespace attnsim
