#include "kernels/cpu/reference.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <gmock/gmock.h>

#include "tests/kernels/random_block.hpp"

namespace attnsim::kernels::cpu {
namespace cpu_reference_test {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;
using testing::ThrowsMessage;

TEST(reference_forward, two_keys_on_paper) {
  // Scores log 1 and log 3: P = 1/4, 3/4; O = 1/4 * 10 + 3/4 * 20 = 17.5; L = log(1 + 3).
  const reference_attention a{
      .head_dim = 1, .query_positions = {0}, .key_positions = {0, 1}, .scale = 1};
  const auto result = reference_forward(a, std::vector{1.0}, std::vector{0.0, std::log(3)},
                                        std::vector{10.0, 20.0});
  EXPECT_THAT(result.output, ElementsAre(DoubleNear(17.5, 1e-14)));
  EXPECT_THAT(result.lse, ElementsAre(DoubleNear(std::log(4), 1e-14)));
}

// The same scores of keys of 2 elements and values of 3.
TEST(reference_forward, values_of_another_number_of_elements) {
  const reference_attention a{
      .head_dim = 2, .v_head_dim = 3, .query_positions = {0}, .key_positions = {0, 1}, .scale = 1};
  const auto result =
      reference_forward(a, std::vector{1.0, 1.0}, std::vector{0.0, 0.0, std::log(3), 0.0},
                        std::vector{10.0, 0.0, 4.0, 20.0, 1.0, 4.0});
  EXPECT_THAT(result.output,
              ElementsAre(DoubleNear(17.5, 1e-14), DoubleNear(0.75, 1e-14), DoubleNear(4, 1e-14)));
}

// The same sums with one more key of score log 4 and no value: P = 1/8, 3/8; L = log(1 + 3 + 4).
TEST(reference_forward, a_sink_takes_weight_and_adds_nothing) {
  const reference_attention a{.head_dim = 1,
                              .query_positions = {0},
                              .key_positions = {0, 1},
                              .scale = 1,
                              .sinks = {std::log(4)}};
  const auto result = reference_forward(a, std::vector{1.0}, std::vector{0.0, std::log(3)},
                                        std::vector{10.0, 20.0});
  EXPECT_THAT(result.output, ElementsAre(DoubleNear(8.75, 1e-14)));
  EXPECT_THAT(result.lse, ElementsAre(DoubleNear(std::log(8), 1e-14)));
}

TEST(reference_forward, equal_scores_average_what_the_mask_shows) {
  // Query positions 5, 0, 3; key positions 3, 5, 0, in any order. Window 3: 5 sees 3, 5; 0 sees 0;
  // 3 sees 3.
  const reference_attention a{.head_dim = 1,
                              .query_positions = {5, 0, 3},
                              .key_positions = {3, 5, 0},
                              .causal = true,
                              .window = 3};
  const auto result = reference_forward(a, std::vector{0.0, 0.0, 0.0}, std::vector{1.0, 1.0, 1.0},
                                        std::vector{30.0, 50.0, 70.0});
  EXPECT_THAT(result.output, ElementsAre(40, 70, 30));
  EXPECT_THAT(result.lse, ElementsAre(DoubleNear(std::log(2), 1e-15), 0, 0));
}

// Window 1, the first token of each document kept; documents 0..2 and 3..5. Row 2 sees 0 and 2, row 4 sees 3 and 4, row 3 itself.
TEST(reference_forward, a_window_may_keep_first_tokens) {
  const reference_attention a{.head_dim = 1,
                              .query_positions = {2, 4, 3},
                              .key_positions = {0, 1, 2, 3, 4},
                              .causal = true,
                              .window = 1,
                              .kept_first = 1,
                              .document_ends = {0, 3, 6}};
  const auto result =
      reference_forward(a, std::vector{0.0, 0.0, 0.0}, std::vector{1.0, 1.0, 1.0, 1.0, 1.0},
                        std::vector{10.0, 20.0, 30.0, 40.0, 50.0});
  EXPECT_THAT(result.output, ElementsAre(20, 45, 40));
}

TEST(reference_forward, a_row_that_sees_nothing_is_zero) {
  const reference_attention a{
      .head_dim = 1, .query_positions = {0}, .key_positions = {1}, .causal = true};
  const auto result = reference_forward(a, std::vector{1.0}, std::vector{1.0}, std::vector{1.0});
  EXPECT_THAT(result.output, ElementsAre(0));
  EXPECT_THAT(result.lse, ElementsAre(-std::numeric_limits<double>::infinity()));
}

TEST(reference_backward, two_keys_on_paper) {
  // As above with dO = 2: dV = P dO = 0.5, 1.5; dP = dO V = 20, 40; delta = dO O = 35;
  // dS = P (dP - delta) = -3.75, 3.75; dQ = sum dS K = 3.75 log 3; dK = dS Q = -3.75, 3.75.
  const reference_attention a{
      .head_dim = 1, .query_positions = {0}, .key_positions = {0, 1}, .scale = 1};
  const auto result = reference_backward(a, std::vector{1.0}, std::vector{0.0, std::log(3)},
                                         std::vector{10.0, 20.0}, std::vector{2.0});
  EXPECT_THAT(result.query, ElementsAre(DoubleNear(3.75 * std::log(3), 1e-13)));
  EXPECT_THAT(result.key, ElementsAre(DoubleNear(-3.75, 1e-13), DoubleNear(3.75, 1e-13)));
  EXPECT_THAT(result.value, ElementsAre(DoubleNear(0.5, 1e-14), DoubleNear(1.5, 1e-14)));
}

/// Central differences of f = sum(O * dO) in every element of `input`, which f reads.
template <typename Function>
std::vector<double> finite_differences(std::vector<double>& input, const Function& f) {
  constexpr double step = 1e-5;
  std::vector<double> result;
  for (double& x : input) {
    const double kept = x;
    x = kept + step;
    const double above = f();
    x = kept - step;
    result.push_back((above - f()) / (2 * step));
    x = kept;
  }
  return result;
}

TEST(reference_backward, agrees_with_finite_differences) {
  test::random_source random{7};
  for (int trial = 0; trial < 12; ++trial) {
    auto shape = test::random_block(random, 6);
    shape.head_dim = random.integer(1, 4);
    shape.v_head_dim = random.integer(0, 4);
    shape.mask.query_first = random.integer(-3, 6);
    shape.mask.key_first = 0;
    auto a = test::reference_of(shape);
    for (int head = 0; trial % 2 == 0 && head < shape.heads; ++head) a.sinks.push_back(0.5 * head);
    auto query = test::random_tensor<float>(test::query_shape(shape), random).dense();
    auto key = test::random_tensor<float>(test::key_shape(shape), random).dense();
    auto value = test::random_tensor<float>(test::value_shape(shape), random).dense();
    const auto output_gradient =
        test::random_tensor<float>(test::output_shape(shape), random).dense();
    const auto loss = [&] {
      const auto output = reference_forward(a, query, key, value).output;
      return std::inner_product(output.begin(), output.end(), output_gradient.begin(), 0.0);
    };
    const auto gradients = reference_backward(a, query, key, value, output_gradient);
    SCOPED_TRACE(test::describe(shape));
    EXPECT_THAT(gradients.query, Pointwise(DoubleNear(1e-7), finite_differences(query, loss)));
    EXPECT_THAT(gradients.key, Pointwise(DoubleNear(1e-7), finite_differences(key, loss)));
    EXPECT_THAT(gradients.value, Pointwise(DoubleNear(1e-7), finite_differences(value, loss)));
  }
}

TEST(reference_forward, refuses_arrays_of_another_size) {
  const reference_attention a{.head_dim = 2, .query_positions = {0}, .key_positions = {0}};
  const std::vector<double> two(2);
  const std::vector<double> three(3);
  EXPECT_THAT(
      [&] { reference_forward(a, two, three, two); },
      ThrowsMessage<std::invalid_argument>("reference attention: key has 3 elements, expected 2"));
  EXPECT_THAT([&] { reference_backward(a, two, two, two, three); },
              ThrowsMessage<std::invalid_argument>(
                  "reference attention: output_gradient has 3 elements, expected 2"));
  EXPECT_THAT([&] { reference_forward({.heads = 3, .kv_heads = 2}, two, two, two); },
              ThrowsMessage<std::invalid_argument>(
                  "reference attention: kv_heads 2 does not divide heads 3"));
}

}  // namespace cpu_reference_test
}  // namespace attnsim::kernels::cpu
