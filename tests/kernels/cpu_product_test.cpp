#include "kernels/cpu/product.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "kernels/float16.hpp"

namespace attnsim::kernels::cpu {
namespace cpu_product_test {

using testing::ElementsAre;

// A = 1 2 3   B = 1 0   A B = 7 8
//     4 5 6       0 1         16 17
//                 2 2
const std::vector<float> a{1, 2, 3, 4, 5, 6}, a_transposed{1, 4, 2, 5, 3, 6}, b{1, 0, 0, 1, 2, 2},
    b_transposed{1, 0, 2, 0, 1, 2};

product_arguments shaped() {
  return {
      .rows = 2, .cols = 2, .inner = 3, .type = data_type::fp32, .result_type = data_type::fp32};
}

TEST(cpu_product, of_operands_that_lie_either_way) {
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      std::vector<float> c(4, -1);
      auto p = shaped();
      p.left = left ? a_transposed.data() : a.data();
      p.left_transposed = left;
      p.right = right ? b_transposed.data() : b.data();
      p.right_transposed = right;
      p.result = c.data();
      product(p);
      EXPECT_THAT(c, ElementsAre(7, 8, 16, 17));
    }
  }
}

TEST(cpu_product, adds) {
  std::vector<float> c{1, 2, 3, 4};
  auto p = shaped();
  p.left = a.data();
  p.right = b.data();
  p.result = c.data();
  p.adds = true;
  product(p);
  EXPECT_THAT(c, ElementsAre(8, 10, 19, 21));
}

TEST(cpu_product, of_bf16_is_rounded_once) {
  const std::vector<bf16> x{bf16(256), bf16(1)}, y{bf16(1), bf16(1)};
  bf16 rounded(0.f);
  float whole = 0;
  product_arguments p{.rows = 1, .cols = 1, .inner = 2, .left = x.data(), .right = y.data()};
  p.result = &rounded;
  product(p);
  EXPECT_EQ(float{rounded}, 256);  // 257 lies between 256 and 258, and 256 is even
  p.result = &whole;
  p.result_type = data_type::fp32;
  product(p);
  EXPECT_EQ(whole, 257);
}

}  // namespace cpu_product_test
}  // namespace attnsim::kernels::cpu
