#include "kernels/backend.hpp"

#include <gmock/gmock.h>

namespace attnsim::kernels {
namespace backend_test {

constexpr token_shape shape{.batch = 2, .tokens = 3, .heads = 4, .head_dim = 5};

TEST(dense, has_no_gaps) {
  const auto tensor = dense(nullptr, data_type::bf16, shape);
  EXPECT_EQ(tensor.view.batch_stride, 3 * 4 * 5);
  EXPECT_EQ(tensor.view.token_stride, 4 * 5);
  EXPECT_EQ(tensor.view.head_stride, 5);
  EXPECT_EQ(dense_bytes(data_type::bf16, shape), 2 * 3 * 4 * 5 * 2);
  EXPECT_EQ(dense_bytes(data_type::fp32, shape), 2 * 3 * 4 * 5 * 4);
}

TEST(tokens_from, moves_by_elements_of_the_type) {
  std::byte memory[256];
  const auto odd = tokens_from(dense(memory, data_type::fp16, shape), 1, 2);
  EXPECT_EQ(static_cast<std::byte*>(odd.view.data) - memory, 4 * 5 * 2);
  EXPECT_EQ(odd.view.token_stride, 2 * 4 * 5);
  EXPECT_EQ(odd.view.batch_stride, 3 * 4 * 5);
}

}  // namespace backend_test
}  // namespace attnsim::kernels
