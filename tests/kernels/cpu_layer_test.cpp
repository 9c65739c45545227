#include "kernels/cpu/layer.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace attnsim::kernels::cpu {
namespace cpu_layer_test {

using testing::ElementsAre;
using testing::FloatNear;

TEST(cpu_layer, norm_adds_the_branch_and_scales) {
  const std::vector<float> residual{1, 2}, branch{2, 2}, weight{1, 2};
  std::vector<float> sum(2), result(2);
  float scale = 0;
  norm({.rows = 1,
        .width = 2,
        .type = data_type::fp32,
        .residual = residual.data(),
        .branch = branch.data(),
        .weight = weight.data(),
        .sum = sum.data(),
        .result = result.data(),
        .scale = &scale});
  EXPECT_THAT(sum, ElementsAre(3, 4));
  EXPECT_FLOAT_EQ(scale, 1 / std::sqrt(12.5f + 1e-5f));
  EXPECT_THAT(result, ElementsAre(3 * scale, 8 * scale));
}

/// Along x nothing changes but by epsilon: a norm of a multiple is the same.
TEST(cpu_layer, norm_has_no_gradient_along_its_input) {
  const std::vector<float> sum{3, 4}, weight{1, 1}, gradient{3, 4}, other{10, 20};
  std::vector<float> sum_gradient(2), weight_gradient{100, 200};
  const float scale = 1 / std::sqrt(12.5f);
  norm_gradient({.rows = 1,
                 .width = 2,
                 .type = data_type::fp32,
                 .sum = sum.data(),
                 .scale = &scale,
                 .weight = weight.data(),
                 .result_gradient = gradient.data(),
                 .residual_gradient = other.data(),
                 .sum_gradient = sum_gradient.data(),
                 .weight_gradient = weight_gradient.data()});
  EXPECT_THAT(sum_gradient, ElementsAre(FloatNear(10, 1e-5f), FloatNear(20, 1e-5f)));
  EXPECT_THAT(weight_gradient,
              ElementsAre(FloatNear(100 + 9 * scale, 1e-4f), FloatNear(200 + 16 * scale, 1e-4f)));
}

/// Two tokens, two of three experts each: the first's weights are 1/4 and 3/4, the second's 1/2.
class experts_of_two_tokens : public testing::Test {
 protected:
  const std::vector<std::int32_t> places_{0, 2, 3, 1}, chosen_{0, 1, 2, 0};
  const std::vector<float> logits_{0, std::log(3.0F), 9, 5, 9, 5};
  expert_places at() const {
    return {
        .rows = 2, .active = 2, .experts = 3, .places = places_.data(), .chosen = chosen_.data()};
  }
};

TEST_F(experts_of_two_tokens, are_ordered) {
  const std::vector<float> tokens{1, 2};
  std::vector<float> ordered(4);
  order_tokens({.at = at(),
                .width = 1,
                .type = data_type::fp32,
                .tokens = tokens.data(),
                .ordered = ordered.data()});
  EXPECT_THAT(ordered, ElementsAre(1, 2, 1, 2));
}

TEST_F(experts_of_two_tokens, are_weighed_and_summed) {
  const std::vector<float> ordered{4, 10, 8, 20};
  std::vector<float> weighed(2), plain(2);
  expert_sum_arguments a{.at = at(),
                         .width = 1,
                         .type = data_type::fp32,
                         .logits = logits_.data(),
                         .ordered = ordered.data(),
                         .result = weighed.data()};
  sum_experts(a);
  EXPECT_THAT(weighed, ElementsAre(FloatNear(7, 1e-5F), FloatNear(15, 1e-5F)));
  a.logits = nullptr;
  a.result = plain.data();
  sum_experts(a);
  EXPECT_THAT(plain, ElementsAre(12, 30));
}

/// Of logits 1/4 3/4 (4 - 8) 2 for the first token, 1/4 (20 - 10) 3 for the second.
TEST_F(experts_of_two_tokens, have_gradients) {
  const std::vector<float> ordered{4, 10, 8, 20}, gradient{2, 3};
  std::vector<float> of_ordered(4), of_logits(6, 100);
  sum_experts_gradient({.at = at(),
                        .width = 1,
                        .type = data_type::fp32,
                        .logits = logits_.data(),
                        .ordered = ordered.data(),
                        .result_gradient = gradient.data(),
                        .ordered_gradient = of_ordered.data(),
                        .logits_gradient = of_logits.data()});
  EXPECT_THAT(of_ordered, ElementsAre(FloatNear(0.5, 1e-5F), 1.5, FloatNear(1.5, 1e-5F), 1.5));
  EXPECT_THAT(of_logits, ElementsAre(FloatNear(-1.5, 1e-5F), FloatNear(1.5, 1e-5F), 0,
                                     FloatNear(-7.5, 1e-4F), 0, FloatNear(7.5, 1e-4F)));
}

TEST(cpu_layer, a_quarter_turn_and_back) {
  const std::vector<float> x{1, 2}, quarter{0, 1};  // cosine, sine
  std::vector<float> turned(2), back(2);
  const token_shape shape{1, 1, 1, 2};
  rotate(shape, tensor_view<float>{turned.data(), 2, 2, 2},
         tensor_view<const float>{x.data(), 2, 2, 2}, quarter.data(), false);
  EXPECT_THAT(turned, ElementsAre(-2, 1));
  rotate(shape, tensor_view<float>{back.data(), 2, 2, 2},
         tensor_view<const float>{turned.data(), 2, 2, 2}, quarter.data(), true);
  EXPECT_THAT(back, ElementsAre(1, 2));
}

/// silu(0) = 0 with the slope 1/2; far up it is its argument.
TEST(cpu_layer, gate_and_its_gradient) {
  const std::vector<float> inputs{0, 100, 3, 5}, gradient{2, 4};
  std::vector<float> result(2), input_gradient(4);
  gate({.rows = 1,
        .width = 2,
        .type = data_type::fp32,
        .inputs = inputs.data(),
        .result = result.data()});
  EXPECT_THAT(result, ElementsAre(0, 500));
  gate_gradient({.rows = 1,
                 .width = 2,
                 .type = data_type::fp32,
                 .inputs = inputs.data(),
                 .result_gradient = gradient.data(),
                 .input_gradient = input_gradient.data()});
  EXPECT_THAT(input_gradient, ElementsAre(3, 20, 0, 400));
}

}  // namespace cpu_layer_test
}  // namespace attnsim::kernels::cpu
