#include "kernels/cpu/merge.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <gmock/gmock.h>

#include "kernels/float16.hpp"
#include "tests/kernels/random_block.hpp"

namespace attnsim::kernels::cpu {
namespace cpu_merge_test {

using testing::ElementsAre;
using testing::FloatEq;
using testing::ThrowsMessage;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr token_shape two_elements{.tokens = 1, .head_dim = 2};

struct row {
  std::vector<float> output;
  float lse;
};

row merged(row a, const row& b) {
  merge<float, float>(two_elements, {a.output.data()}, {&a.lse}, {b.output.data()}, {&b.lse});
  return a;
}

TEST(merge, weighs_by_the_sums_of_exponentials) {
  // Sums 1 and 3: L = log 4, O = 1/4 (8, 0) + 3/4 (0, 4).
  const auto result = merged({{8, 0}, 0}, {{0, 4}, std::log(3.0f)});
  EXPECT_THAT(result.output, ElementsAre(FloatEq(2), FloatEq(3)));
  EXPECT_FLOAT_EQ(result.lse, std::log(4.0f));
}

TEST(merge, first_part_is_taken_over_exactly_whatever_was_there) {
  const auto result = merged({{nan, nan}, -infinity}, {{0.1f, 0.3f}, 0.7f});
  EXPECT_THAT(result.output, ElementsAre(0.1f, 0.3f));
  EXPECT_EQ(result.lse, 0.7f);
}

TEST(merge, part_that_saw_nothing_changes_nothing) {
  const auto result = merged({{0.1f, 0.3f}, 0.7f}, {{nan, nan}, -infinity});
  EXPECT_THAT(result.output, ElementsAre(0.1f, 0.3f));
  EXPECT_EQ(result.lse, 0.7f);
}

TEST(merge, nothing_and_nothing_is_zero) {
  const auto result = merged({{nan, nan}, -infinity}, {{nan, nan}, -infinity});
  EXPECT_THAT(result.output, ElementsAre(0, 0));
  EXPECT_EQ(result.lse, -infinity);
}

TEST(merge, large_log_sum_exps_do_not_overflow) {
  const auto result = merged({{1, 2}, 1000}, {{3, 4}, 1000});
  EXPECT_THAT(result.output, ElementsAre(2, 3));
  EXPECT_FLOAT_EQ(result.lse, 1000 + std::log(2.0f));
}

template <typename Pair>
class merge_of_types : public testing::Test {};
template <typename A, typename T>
struct types {
  using accumulator = A;
  using part = T;
};
using type_pairs = testing::Types<types<float, float>, types<float, bf16>, types<float, fp16>,
                                  types<bf16, float>, types<bf16, bf16>, types<bf16, fp16>,
                                  types<fp16, float>, types<fp16, bf16>, types<fp16, fp16>>;
TYPED_TEST_SUITE(merge_of_types, type_pairs);

TYPED_TEST(merge_of_types, agrees_with_fp64_on_strided_tensors) {
  using A = typename TypeParam::accumulator;
  test::random_source random{5};
  const token_shape shape{.batch = 2, .tokens = 5, .heads = 3, .head_dim = 7};
  const token_shape rows{.batch = 2, .tokens = 5, .heads = 3, .head_dim = 1};
  auto output = test::random_tensor<A>(shape, random);
  auto lse = test::random_tensor<float>(rows, random);
  const auto part = test::random_tensor<typename TypeParam::part>(shape, random);
  const auto part_lse = test::random_tensor<float>(rows, random);
  auto expected = output.dense();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = std::exp(lse.dense()[i / 7]);
    const double b = std::exp(part_lse.dense()[i / 7]);
    expected[i] = (a * expected[i] + b * part.dense()[i]) / (a + b);
  }
  merge(shape, output.view(), lse.view(), part.view(), part_lse.view());
  EXPECT_LT(test::relative_error(output.dense(), expected), sizeof(A) == 4 ? 1e-6 : 4e-3);
}

row weighed(row part, std::vector<float> lse_of_parts, std::int64_t own) {
  weigh<float>(two_elements, {part.output.data()}, {lse_of_parts.data(), 1, 1, 1},
               static_cast<std::int64_t>(lse_of_parts.size()), own, {&part.lse});
  return part;
}

TEST(weigh, makes_parts_add_up) {
  // Sums 1 and 3, as above: L = log 4, 1/4 (8, 0) and 3/4 (0, 4).
  const std::vector<float> parts{0, std::log(3.0f)};
  const auto first = weighed({{8, 0}, 0}, parts, 0), second = weighed({{0, 4}, 0}, parts, 1);
  EXPECT_THAT(first.output, ElementsAre(FloatEq(2), 0));
  EXPECT_THAT(second.output, ElementsAre(0, FloatEq(3)));
  EXPECT_FLOAT_EQ(first.lse, std::log(4.0f));
  EXPECT_FLOAT_EQ(second.lse, std::log(4.0f));
}

TEST(weigh, part_that_saw_nothing_becomes_zero) {
  const auto nothing = weighed({{nan, nan}, 0}, {0.5f, -infinity}, 1);
  EXPECT_THAT(nothing.output, ElementsAre(0, 0));
  EXPECT_EQ(nothing.lse, 0.5f);
  EXPECT_THAT(weighed({{3, 4}, 0}, {0.5f, -infinity}, 0).output, ElementsAre(3, 4));
  const auto none = weighed({{nan, nan}, 0}, {-infinity, -infinity}, 1);
  EXPECT_THAT(none.output, ElementsAre(0, 0));
  EXPECT_EQ(none.lse, -infinity);
}

TEST(weigh, refuses_a_part_that_is_not_there) {
  EXPECT_THAT(
      [] {
        weighed({{1, 2}, 0}, {0}, 1);
      },
      ThrowsMessage<std::invalid_argument>("weigh: there is no part 1 of 1"));
}

row sunk(row part, float logit, std::int64_t parts) {
  sink<float>(two_elements, {part.output.data()}, {&part.lse}, {&logit}, parts);
  return part;
}

// Sum 3 and a sink of 1: 3/4 of the output is left, L = log 4. In 2 parts a sink of 2 is 1 in each.
TEST(sink, is_one_more_key_without_a_value) {
  for (const auto& [logit, parts] : {std::pair(0.0f, 1), std::pair(std::log(2.0f), 2)}) {
    const auto result = sunk({{8, 4}, std::log(3.0f)}, logit, parts);
    EXPECT_THAT(result.output, ElementsAre(FloatEq(6), FloatEq(3)));
    EXPECT_FLOAT_EQ(result.lse, std::log(4.0f));
  }
}

TEST(sink, is_all_that_a_row_sees_where_it_sees_nothing) {
  const auto result = sunk({{nan, nan}, -infinity}, 0.5f, 1);
  EXPECT_THAT(result.output, ElementsAre(0, 0));
  EXPECT_EQ(result.lse, 0.5f);
}

TEST(merge, refuses_zero_sizes) {
  EXPECT_THAT(
      [] { merge<float>({.tokens = 1, .heads = 0}, {}, {}, tensor_view<const float>{}, {}); },
      ThrowsMessage<std::invalid_argument>("token block: heads is 0, expected at least 1"));
}

}  // namespace cpu_merge_test
}  // namespace attnsim::kernels::cpu
