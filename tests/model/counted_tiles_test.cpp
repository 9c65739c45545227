#include "model/attention/counted_tiles.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "model/attention/document_kinds.hpp"

namespace attnsim {
namespace counted_tiles_test {

/// A tile without its place: how many there are of each shape.
using shape = std::tuple<std::int64_t, std::int64_t, std::int64_t, bool, bool, bool>;
using shapes = std::map<shape, std::int64_t>;

shapes shapes_of(const std::vector<tile>& tiles) {
  shapes found;
  for (const auto& t : tiles)
    found[{t.rows, t.cols, t.pairs(), t.mask.causal, t.adds_rows, t.adds_cols}] += t.times;
  return found;
}

/// Chunks `first`, `first + step`, ... as a rank that gathered them has them.
token_set gathered(token_layout layout, const attention& a, int chunks, int first, int step,
                   int count) {
  token_set all;
  for (int i = 0; i < count; ++i) {
    const auto chunk = tokens_of(layout, a, chunks, (first + i * step) % chunks);
    all.insert(all.end(), chunk.begin(), chunk.end());
  }
  return all;
}

TEST(counted_tiles, of_rows_and_columns_are_those_that_are_listed) {
  for (const auto layout :
       {token_layout::zigzag, token_layout::contiguous, token_layout::striped}) {
    for (const auto& [rows, cols] :
         {std::pair{8, 8}, {16, 8}, {4, 24}, {12, 3}, {1, 16}, {16, 1}}) {
      const int chunks = rows * cols;
      const attention a{.sequence = chunks * 8, .mask = mask_kind::causal};
      const std::vector<token_document> whole{{0, a.sequence}};
      for (int row = 0; row < rows; ++row) {
        const auto queries = gathered(layout, a, chunks, row * cols, 1, cols);
        const placed_block q(queries, whole);
        for (int col = 0; col < cols; ++col) {
          const auto keys = gathered(layout, a, chunks, col, cols, rows);
          for (const bool staircase : {false, true}) {
            EXPECT_EQ(shapes_of(counted_tiles(q, {keys, whole}, a, staircase, whole)),
                      shapes_of(kernel_tiles(queries, keys, a, staircase)))
                << name_of(layout) << " " << rows << " x " << cols << ": " << row << ", " << col;
          }
        }
      }
    }
  }
}

// In the last row and column the last chunk's two ranges are one.
TEST(counted_tiles, are_few_where_many_are_alike) {
  const attention a{.sequence = 128 * 128 * 8, .mask = mask_kind::causal};
  const std::vector<token_document> whole{{0, a.sequence}};
  for (const auto& [row, col] : {std::pair{64, 40}, {127, 40}, {64, 127}, {127, 127}}) {
    const auto queries = gathered(token_layout::zigzag, a, 128 * 128, row * 128, 1, 128),
               keys = gathered(token_layout::zigzag, a, 128 * 128, col, 128, 128);
    const auto listed = kernel_tiles(queries, keys, a, false);
    const auto counted = counted_tiles({queries, whole}, {keys, whole}, a, false, whole);
    EXPECT_EQ(shapes_of(counted), shapes_of(listed));
    EXPECT_GT(listed.size(), 150u);
    EXPECT_LT(counted.size(), 40u);
  }
}

/// Random chunks, padding and documents; ranges that repeat now and then.
TEST(counted_tiles, of_random_blocks_are_those_that_are_listed) {
  std::mt19937 random(5);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int fewer = 0;
  for (int round = 0; round < 2000; ++round) {
    const int chunks = 6 + pick(40);
    const auto layout = static_cast<token_layout>(pick(4));
    attention a{.sequence = 2 * chunks * (1 + pick(4)), .mask = mask_kind::causal};
    if (pick(4) == 0) a.mask = mask_kind::full;
    if (pick(3) == 0) a.padding = pick(static_cast<int>(a.sequence));
    if (pick(3) == 0) {
      a.padding = 0;
      a.documents.assign(static_cast<std::size_t>(1 + pick(3)), 2 * chunks);
      a.sequence = static_cast<std::int64_t>(a.documents.size()) * 2 * chunks;
    }
    const auto block = [&] {
      auto all = gathered(layout, a, chunks, pick(chunks), 1 + pick(3), 1 + pick(chunks / 3));
      return pick(4) == 0 ? ascending(all) : all;
    };
    const auto queries = block(), keys = pick(8) == 0 ? queries : block();
    const auto documents = shared_documents(queries, keys, document_bounds(a));
    const held_results held{.rows = pick(2) == 0, .cols = pick(2) == 0};
    const bool staircase = pick(2) == 0;
    const auto listed = kernel_tiles(queries, keys, a, staircase, documents, held);
    const auto counted =
        counted_tiles({queries, documents}, {keys, documents}, a, staircase, documents, held);
    EXPECT_EQ(shapes_of(counted), shapes_of(listed)) << "round " << round;
    fewer += counted.size() < listed.size();
  }
  EXPECT_GT(fewer, 100);
}

}  // namespace counted_tiles_test
}  // namespace attnsim
