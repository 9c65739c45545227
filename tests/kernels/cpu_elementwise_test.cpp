#include "kernels/cpu/elementwise.hpp"

#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>

#include "kernels/float16.hpp"
#include "tests/kernels/random_block.hpp"

namespace attnsim::kernels::cpu {
namespace cpu_elementwise_test {

using testing::Each;
using testing::ElementsAre;
using testing::ThrowsMessage;

TEST(attention_delta, is_the_inner_product_of_each_head) {
  // Two heads: 1*5 + 2*6 and 3*7 + 4*8.
  const std::vector<float> output{1, 2, 3, 4};
  const std::vector<float> gradient{5, 6, 7, 8};
  std::vector<float> delta(2);
  attention_delta<float>({.tokens = 1, .heads = 2, .head_dim = 2}, {output.data(), 0, 0, 2},
                         {gradient.data(), 0, 0, 2}, {delta.data(), 0, 0, 1});
  EXPECT_THAT(delta, ElementsAre(17, 53));
}

TEST(accumulate, adds_in_fp32) {
  // 1 + 2^-9 is no bf16 but an fp32.
  std::vector<float> sum{1, 2};
  const std::vector<bf16> part{bf16(0x1p-9f), bf16(3)};
  accumulate<float, bf16>({.tokens = 1, .head_dim = 2}, {sum.data()}, {part.data()});
  EXPECT_THAT(sum, ElementsAre(1 + 0x1p-9f, 5));
}

TEST(cast, rounds_to_the_destination_type) {
  // 1 + 2^-9 rounds to 1 in bf16 and is exact in fp16.
  const std::vector<float> source{1 + 0x1p-9f};
  std::vector<bf16> as_bf16(1);
  std::vector<fp16> as_fp16(1);
  cast<bf16, float>({.tokens = 1, .head_dim = 1}, {as_bf16.data()}, {source.data()});
  cast<fp16, float>({.tokens = 1, .head_dim = 1}, {as_fp16.data()}, {source.data()});
  EXPECT_EQ(float{as_bf16[0]}, 1);
  EXPECT_EQ(float{as_fp16[0]}, 1 + 0x1p-9f);
}

TEST(cast, copies_between_layouts) {
  test::random_source random{21};
  const token_shape shape{.batch = 2, .tokens = 3, .heads = 4, .head_dim = 5};
  const auto source = test::random_tensor<bf16>(shape, random);
  test::tensor<bf16> destination(shape, true, 1);
  cast(shape, destination.view(), source.view());
  EXPECT_EQ(destination.dense(), source.dense());
}

TEST(fill, sets_every_element_and_no_gap) {
  test::tensor<fp16> tensor({.batch = 2, .tokens = 3, .heads = 2, .head_dim = 4}, true, 1);
  fill(tensor.shape, tensor.view(), 1.5f);
  EXPECT_THAT(tensor.dense(), Each(1.5));
  EXPECT_EQ(float{tensor.storage[4]}, 0);
}

std::vector<float> interleaved(const std::vector<float>& source, std::int64_t parts) {
  std::vector<float> result(source.size());
  interleave<float>({.tokens = std::ssize(source), .head_dim = 1}, parts, {result.data(), 0, 1},
                    {source.data(), 0, 1});
  return result;
}

TEST(interleave, deals_the_parts_out_in_turn) {
  EXPECT_THAT(interleaved({0, 1, 2, 10, 11, 12}, 2), ElementsAre(0, 10, 1, 11, 2, 12));
}

TEST(interleave, is_undone_with_the_other_divisor) {
  const std::vector<float> tokens{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(interleaved(interleaved(tokens, 3), 4), tokens);
}

TEST(interleave, refuses_parts_that_do_not_divide_the_tokens) {
  EXPECT_THAT(
      [] {
        interleaved({1, 2, 3}, 2);
      },
      ThrowsMessage<std::invalid_argument>("interleave: 2 parts do not divide 3 tokens"));
  EXPECT_THAT(
      [] {
        interleaved({1, 2, 3}, 0);
      },
      ThrowsMessage<std::invalid_argument>("interleave: 0 parts do not divide 3 tokens"));
}

}  // namespace cpu_elementwise_test
}  // namespace attnsim::kernels::cpu
