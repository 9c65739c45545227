#include "kernels/layer_block.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace attnsim::kernels {
namespace layer_block_test {

template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(layer_block, refuses_sizes_and_types) {
  EXPECT_EQ(refusal([] { check(product_arguments{.rows = 2, .cols = 0, .inner = 2}); }),
            "product: cols is 0, expected at least 1");
  EXPECT_EQ(refusal([] {
              check(product_arguments{.rows = 2,
                                      .cols = 2,
                                      .inner = 2,
                                      .type = data_type::fp32,
                                      .result_type = data_type::bf16});
            }),
            "product: result_type is bf16, expected fp32");
  EXPECT_EQ(refusal([] { check(norm_arguments{.rows = 2, .width = 2, .type = data_type::fp8}); }),
            "norm: type is fp8, expected bf16, fp16 or fp32");
  EXPECT_EQ(refusal([] { check(norm_gradient_arguments{.rows = 2}); }),
            "norm gradient: width is 0, expected at least 1");
  EXPECT_EQ(refusal([] { check(gate_arguments{.width = 2}); }),
            "gate: rows is 0, expected at least 1");
  EXPECT_EQ(refusal([] { check(gate_gradient_arguments{.width = 2}); }),
            "gate gradient: rows is 0, expected at least 1");
  EXPECT_EQ(refusal([] {
              check_rotation({1, 4, 2, 7});
            }),
            "rotation: head_dim is 7, expected an even number");
}

}  // namespace layer_block_test
}  // namespace attnsim::kernels
