#include "model/schedule/algorithms/mesh_steps.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace mesh_steps_test {

// The example of Mesh-Attention's figure 1d: GPU 3 with a 3 x 3 tile. Rows 0, 1, 2 are Q3, Q4, Q5; columns 0, 1, 2 are
// KV3, KV6, KV0.
//   step  compute                 communicate
//   0     Q3-KV3                  recv KV6
//   1     Q3-KV6                  recv KV0
//   2     Q3-KV0                  recv Q4
//   3     Q4-KV3, Q4-KV6, Q4-KV0  O3 and recv Q5
//   4     Q5-KV3, Q5-KV6, Q5-KV0  O4
//   5     -                       O5
TEST(mesh_steps, reproduce_the_paper_example) {
  const std::vector<mesh_step> expected{
      {.row_first = 0, .rows = 1, .col_first = 0, .cols = 1, .receives = arrival::keys},
      {.row_first = 0, .rows = 1, .col_first = 1, .cols = 1, .receives = arrival::keys},
      {.row_first = 0, .rows = 1, .col_first = 2, .cols = 1, .receives = arrival::queries},
      {.row_first = 1,
       .rows = 1,
       .col_first = 0,
       .cols = 3,
       .receives = arrival::queries,
       .output = 0},
      {.row_first = 2, .rows = 1, .col_first = 0, .cols = 3, .output = 1},
      {.output = 2},
  };
  EXPECT_EQ(mesh_steps(3, 3), expected);
}

TEST(mesh_steps, one_query_chunk_is_a_ring) {
  const auto steps = mesh_steps(1, 4);
  ASSERT_EQ(steps.size(), 5u);
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(steps[static_cast<std::size_t>(s)].col_first, s);
    EXPECT_EQ(steps[static_cast<std::size_t>(s)].receives, s < 3 ? arrival::keys : arrival::none);
  }
  EXPECT_EQ(steps[4], (mesh_step{.output = 0}));
}

/// Every block once, every chunk received once, every row and column sent once, for all tiles up to 9 x 9.
TEST(mesh_steps, compute_every_block_once) {
  for (int a = 1; a <= 9; ++a) {
    for (int b = 1; b <= 9; ++b) {
      for (const bool backward : {false, true}) {
        for (const double block : {0.0, 0.3, 1.0, 5.0}) {
          const mesh_costs costs{.block = block, .key_gradient = backward ? 2.0 : 0.0};
          std::vector<int> blocks(static_cast<std::size_t>(a * b));
          int rows = 1, cols = 1, outputs = 0, gradients = 0;
          for (const auto& s : mesh_steps(a, b, costs, backward)) {
            for (int i = s.row_first; i < s.row_first + s.rows; ++i) {
              for (int j = s.col_first; j < s.col_first + s.cols; ++j) {
                ASSERT_LT(i, rows);
                ASSERT_LT(j, cols);
                ++blocks[static_cast<std::size_t>(i * b + j)];
              }
            }
            rows += s.receives == arrival::queries;
            cols += s.receives == arrival::keys;
            outputs += s.output >= 0;
            gradients += s.key_gradient >= 0;
          }
          EXPECT_EQ(rows, a);
          EXPECT_EQ(cols, b);
          EXPECT_EQ(outputs, a);
          EXPECT_EQ(gradients, backward ? b : 0);
          for (const int n : blocks) EXPECT_EQ(n, 1);
        }
      }
    }
  }
}

}  // namespace mesh_steps_test
}  // namespace attnsim
