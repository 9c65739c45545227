#include "kernels/attention_block.hpp"

#include <stdexcept>

#include <gmock/gmock.h>

namespace attnsim::kernels {
namespace attention_block_test {

using testing::ThrowsMessage;

TEST(tensor_view, strides_count_elements) {
  int data[24] = {};
  const tensor_view<int> view{data, 12, 4, 2};
  EXPECT_EQ(view.at(1, 2, 1) - data, 1 * 12 + 2 * 4 + 1 * 2);
}

TEST(softmax_scale, defaults_to_one_over_the_root_of_head_dim) {
  EXPECT_EQ(softmax_scale({.head_dim = 64}), 0.125f);
  EXPECT_EQ(softmax_scale({.head_dim = 64, .scale = 3}), 3);
}

TEST(check_block_shape, names_the_member) {
  const auto check_it = [](const block_shape& shape) { return [shape] { check(shape); }; };
  EXPECT_NO_THROW(check_it({.rows = 1, .cols = 1})());
  EXPECT_THAT(
      check_it({.batch = 0, .rows = 1, .cols = 1}),
      ThrowsMessage<std::invalid_argument>("attention block: batch is 0, expected at least 1"));
  EXPECT_THAT(check_it({.cols = 1}), ThrowsMessage<std::invalid_argument>(
                                         "attention block: rows is 0, expected at least 1"));
  EXPECT_THAT(
      check_it({.head_dim = -1, .rows = 1, .cols = 1}),
      ThrowsMessage<std::invalid_argument>("attention block: head_dim is -1, expected at least 1"));
  EXPECT_THAT(
      check_it({.heads = 8, .kv_heads = 3, .rows = 1, .cols = 1}),
      ThrowsMessage<std::invalid_argument>("attention block: kv_heads 3 does not divide heads 8"));
  EXPECT_THAT(check_it({.rows = 1, .cols = 1, .mask = {.query_stride = 0}}),
              ThrowsMessage<std::invalid_argument>("block mask: stride 0 is not positive"));
}

TEST(check_token_shape, names_the_member) {
  EXPECT_NO_THROW(check(token_shape{.tokens = 1}));
  EXPECT_THAT([] { check(token_shape{}); }, ThrowsMessage<std::invalid_argument>(
                                                "token block: tokens is 0, expected at least 1"));
}

}  // namespace attention_block_test
}  // namespace attnsim::kernels
