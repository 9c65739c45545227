#include "kernels/cpu/column_range.hpp"

#include <gmock/gmock.h>

#include "tests/kernels/random_block.hpp"

namespace attnsim::kernels::cpu {
namespace cpu_column_range_test {

TEST(visible_columns, are_those_the_mask_shows) {
  test::random_source random{3};
  for (int trial = 0; trial < 2000; ++trial) {
    const auto mask = test::random_mask(random);
    const auto cols = random.integer(1, 100);
    const auto row = random.integer(0, 100);
    const auto seen = visible_columns(mask, row, cols);
    for (std::int64_t j = 0; j < cols; ++j) {
      ASSERT_EQ(seen.begin <= j && j < seen.end, visible(mask, row, j));
    }
  }
}

TEST(visible_columns, of_consecutive_rows) {
  // Rows 2, 3, 4 with a window of 2 see columns 1-2, 2-3, 3-4.
  const auto seen = visible_columns({.causal = true, .window = 2}, 2, 5, 10);
  EXPECT_EQ(seen.begin, 1);
  EXPECT_EQ(seen.end, 5);
}

TEST(column_range, intersects) {
  const column_range part = column_range{0, 5}.intersect({3, 9});
  EXPECT_EQ(part.begin, 3);
  EXPECT_EQ(part.end, 5);
  EXPECT_EQ(part.size(), 2);
  EXPECT_TRUE((column_range{0, 3}.intersect({3, 9}).empty()));
  EXPECT_EQ((column_range{0, 2}.intersect({3, 9}).size()), 0);
}

}  // namespace cpu_column_range_test
}  // namespace attnsim::kernels::cpu
