#include "kernels/argument_checks.hpp"

#include <stdexcept>

#include <gmock/gmock.h>

namespace attnsim::kernels {
namespace argument_checks_test {

using testing::ThrowsMessage;

constexpr block_shape one_pair{.rows = 1, .cols = 1};
constexpr token_shape four_tokens{.tokens = 4};
constexpr device_tensor fp32{data_type::fp32};
constexpr device_tensor bf16{data_type::bf16};
constexpr device_tensor fp16{data_type::fp16};

const forward_arguments good_forward{one_pair, bf16, bf16, bf16, bf16, fp32};
const backward_arguments good_backward{one_pair, bf16, bf16, bf16, bf16, bf16,
                                       fp32,     fp32, bf16, bf16, bf16};

TEST(check_forward, takes_results_in_the_inputs_type_or_fp32) {
  auto arguments = good_forward;
  EXPECT_NO_THROW(check(arguments));
  arguments.output = fp32;
  EXPECT_NO_THROW(check(arguments));
  arguments.output = fp16;
  EXPECT_THAT([&] { check(arguments); }, ThrowsMessage<std::invalid_argument>(
                                             "forward: output is fp16, expected bf16 or fp32"));
}

TEST(check_forward, results_of_fp8_are_bf16_or_fp32) {
  constexpr device_tensor fp8{data_type::fp8};
  forward_arguments arguments{one_pair, fp8, fp8, fp8, bf16, fp32};
  EXPECT_NO_THROW(check(arguments));
  arguments.output = fp8;
  EXPECT_THAT([&] { check(arguments); }, ThrowsMessage<std::invalid_argument>(
                                             "forward: output is fp8, expected bf16 or fp32"));
}

TEST(check_backward, in_fp8_has_gradients_in_bf16_or_fp32) {
  constexpr device_tensor fp8{data_type::fp8};
  auto arguments = good_backward;
  arguments.query = arguments.key = arguments.value = fp8;
  arguments.output_gradient = bf16;
  EXPECT_NO_THROW(check(arguments));
  arguments.output_gradient = fp8;
  EXPECT_THAT([&] { check(arguments); }, ThrowsMessage<std::invalid_argument>(
                                             "backward: output_gradient is fp8, expected bf16"));
}

TEST(check_forward, names_the_argument_of_another_type) {
  auto arguments = good_forward;
  arguments.value = fp16;
  EXPECT_THAT([&] { check(arguments); },
              ThrowsMessage<std::invalid_argument>("forward: value is fp16, expected bf16"));
  arguments = good_forward;
  arguments.lse = bf16;
  EXPECT_THAT([&] { check(arguments); },
              ThrowsMessage<std::invalid_argument>("forward: lse is bf16, expected fp32"));
}

TEST(check_backward, takes_all_gradients_of_one_type) {
  auto arguments = good_backward;
  EXPECT_NO_THROW(check(arguments));
  arguments.query_gradient = arguments.key_gradient = fp32;
  EXPECT_THAT([&] { check(arguments); }, ThrowsMessage<std::invalid_argument>(
                                             "backward: value_gradient is bf16, expected fp32"));
  arguments.value_gradient = fp32;
  EXPECT_NO_THROW(check(arguments));
}

TEST(check_backward, names_the_argument_of_another_type) {
  auto arguments = good_backward;
  arguments.delta = bf16;
  EXPECT_THAT([&] { check(arguments); },
              ThrowsMessage<std::invalid_argument>("backward: delta is bf16, expected fp32"));
}

TEST(check_token_operations, name_operation_and_argument) {
  EXPECT_THAT([] { check_merge(four_tokens, fp32, fp16); },
              ThrowsMessage<std::invalid_argument>("merge: part_lse is fp16, expected fp32"));
  EXPECT_THAT([] { check_weigh(four_tokens, bf16, 2, 0, fp32); },
              ThrowsMessage<std::invalid_argument>("weigh: part_lse is bf16, expected fp32"));
  EXPECT_THAT([] { check_weigh(four_tokens, fp32, 2, 2, fp32); },
              ThrowsMessage<std::invalid_argument>("weigh: there is no part 2 of 2"));
  EXPECT_THAT([] { check_sink(four_tokens, fp32, bf16, 1); },
              ThrowsMessage<std::invalid_argument>("sink: sinks is bf16, expected fp32"));
  EXPECT_THAT([] { check_sink(four_tokens, fp32, fp32, 0); },
              ThrowsMessage<std::invalid_argument>("sink: parts is 0, expected at least 1"));
  EXPECT_THAT(
      [] { check_delta(four_tokens, bf16, fp32, fp32); },
      ThrowsMessage<std::invalid_argument>("delta: output_gradient is fp32, expected bf16"));
  EXPECT_THAT(
      [] { check_interleave(four_tokens, 2, bf16, fp32); },
      ThrowsMessage<std::invalid_argument>("interleave: destination is bf16, expected fp32"));
  EXPECT_THAT([] { check_interleave(four_tokens, 3, fp32, fp32); },
              ThrowsMessage<std::invalid_argument>("interleave: 3 parts do not divide 4 tokens"));
}

}  // namespace argument_checks_test
}  // namespace attnsim::kernels
