#include "kernels/cpu/attention.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <gmock/gmock.h>

#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/merge.hpp"
#include "kernels/float16.hpp"
#include "kernels/float8.hpp"
#include "tests/kernels/random_block.hpp"

namespace attnsim::kernels::cpu {
namespace cpu_attention_test {

using test::relative_error;
using test::tensor;
using testing::Each;
using testing::ThrowsMessage;

constexpr float infinity = std::numeric_limits<float>::infinity();

template <typename T>
constexpr double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-2;

/// A row that sees one key has P = 1 and dS = dP - delta = 0: rounding is relative to dP then.
constexpr double dp_size = 0.25;

/// The inputs of a block, and what the kernels make of them.
template <typename T>
struct block {
  block_shape shape;
  tensor<T> query, key, value, output_gradient;
  tensor<T> output, query_gradient, key_gradient, value_gradient;
  tensor<float> lse, delta;

  block(const block_shape& s, test::random_source& random)
      : shape(s),
        query(test::random_tensor<T>(test::query_shape(s), random)),
        key(test::random_tensor<T>(test::key_shape(s), random)),
        value(test::random_tensor<T>(test::value_shape(s), random)),
        output_gradient(test::random_tensor<T>(test::output_shape(s), random)),
        output(test::random_tensor<T>(test::output_shape(s), random)),
        query_gradient(test::random_tensor<T>(test::query_shape(s), random)),
        key_gradient(test::random_tensor<T>(test::key_shape(s), random)),
        value_gradient(test::random_tensor<T>(test::value_shape(s), random)),
        lse(test::random_tensor<float>(test::row_shape(s), random)),
        delta(test::random_tensor<float>(test::row_shape(s), random)) {}

  void forward(int threads = 1) {
    attention_forward(shape, query.read(), key.read(), value.read(), output.view(), lse.view(),
                      threads);
  }
  void backward(int threads = 1) {
    attention_delta(test::output_shape(shape), output.read(), output_gradient.read(), delta.view());
    attention_backward(shape, query.read(), key.read(), value.read(), output_gradient.read(),
                       lse.read(), delta.read(), query_gradient.view(), key_gradient.view(),
                       value_gradient.view(), threads);
  }
};

/// Forward in fp8: inputs as they are, probabilities rounded, an output in bf16. By 2^-4 / sqrt 3 at most, as a root mean square,
/// and by more than a quarter of that where many keys are seen: the rounding happens.
TEST(cpu_attention_in_fp8, rounds_probabilities_and_nothing_else) {
  test::random_source random(3);
  for (int i = 0; i < 40; ++i) {
    auto shape = test::random_block(random, 200);
    SCOPED_TRACE(test::describe(shape));
    const auto query = test::random_tensor<e4m3>(test::query_shape(shape), random);
    const auto key = test::random_tensor<e4m3>(test::key_shape(shape), random);
    const auto value = test::random_tensor<e4m3>(test::value_shape(shape), random);
    auto output = test::random_tensor<bf16>(test::output_shape(shape), random);
    auto lse = test::random_tensor<float>(test::row_shape(shape), random);
    attention_forward(shape, query.read(), key.read(), value.read(), output.view(), lse.view(), 1);
    const auto expected =
        reference_forward(test::reference_of(shape), query.dense(), key.dense(), value.dense());
    EXPECT_LT(relative_error(lse.dense(), expected.lse), 1e-5);
    const double error = relative_error(output.dense(), expected.output);
    EXPECT_LT(error, 0.04);
    const auto pairs = visible_pairs(shape.mask, shape.rows, shape.cols);
    if (pairs > 20 * shape.rows && shape.rows > 20) EXPECT_GT(error, 0.009);
  }
}

/// Backward: output gradients, probabilities and dS are rounded, each by at most 2^-4. Three roundings
/// reach the gradients of queries and keys, two that of values. On average roundings add as random
/// errors do, of a size of at most 2^-4/sqrt(3) each.
TEST(cpu_attention_in_fp8, rounds_what_products_of_gradients_read) {
  constexpr double rounding = 1.0 / 16;
  constexpr int shapes = 40;
  double query_mean = 0, key_mean = 0, value_mean = 0;
  test::random_source random(5);
  for (int i = 0; i < shapes; ++i) {
    auto shape = test::random_block(random, 120);
    SCOPED_TRACE(test::describe(shape));
    const auto query = test::random_tensor<e4m3>(test::query_shape(shape), random);
    const auto key = test::random_tensor<e4m3>(test::key_shape(shape), random);
    const auto value = test::random_tensor<e4m3>(test::value_shape(shape), random);
    const auto output_gradient = test::random_tensor<bf16>(test::output_shape(shape), random);
    auto output = test::random_tensor<bf16>(test::output_shape(shape), random);
    auto lse = test::random_tensor<float>(test::row_shape(shape), random);
    auto delta = lse;
    auto query_gradient = test::random_tensor<float>(test::query_shape(shape), random);
    auto key_gradient = test::random_tensor<float>(test::key_shape(shape), random);
    auto value_gradient = test::random_tensor<float>(test::value_shape(shape), random);
    attention_forward(shape, query.read(), key.read(), value.read(), output.view(), lse.view(), 1);
    attention_delta(test::output_shape(shape), output.read(), output_gradient.read(), delta.view());
    attention_backward(shape, query.read(), key.read(), value.read(), output_gradient.read(),
                       lse.read(), delta.read(), query_gradient.view(), key_gradient.view(),
                       value_gradient.view(), 1);
    const auto expected = reference_backward(test::reference_of(shape), query.dense(), key.dense(),
                                             value.dense(), output_gradient.dense());
    const double query_error = relative_error(query_gradient.dense(), expected.query, dp_size);
    const double key_error = relative_error(key_gradient.dense(), expected.key, dp_size);
    const double error = relative_error(value_gradient.dense(), expected.value);
    EXPECT_LT(query_error, 3 * rounding);
    EXPECT_LT(key_error, 3 * rounding);
    EXPECT_LT(error, 2 * rounding);
    query_mean += query_error / shapes;
    key_mean += key_error / shapes;
    value_mean += error / shapes;
    const auto pairs = visible_pairs(shape.mask, shape.rows, shape.cols);
    if (pairs > 20 * shape.rows && shape.rows > 20) EXPECT_GT(error, 0.009);
  }
  EXPECT_LT(query_mean, rounding);
  EXPECT_LT(key_mean, rounding);
  EXPECT_LT(value_mean, std::sqrt(2.0 / 3) * rounding);
}

template <typename T>
class cpu_attention : public testing::Test {};
using storage_types = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(cpu_attention, storage_types);

template <typename T>
void expect_oracle(block<T>& b) {
  SCOPED_TRACE(test::describe(b.shape));
  b.forward();
  b.backward();
  const auto a = test::reference_of(b.shape);
  const auto [output, lse] = reference_forward(a, b.query.dense(), b.key.dense(), b.value.dense());
  const auto gradients = reference_backward(a, b.query.dense(), b.key.dense(), b.value.dense(),
                                            b.output_gradient.dense());
  EXPECT_LT(relative_error(b.output.dense(), output), tolerance<T>);
  EXPECT_LT(relative_error(b.lse.dense(), lse), 1e-5);
  EXPECT_LT(relative_error(b.query_gradient.dense(), gradients.query, dp_size), tolerance<T>);
  EXPECT_LT(relative_error(b.key_gradient.dense(), gradients.key, dp_size), tolerance<T>);
  EXPECT_LT(relative_error(b.value_gradient.dense(), gradients.value), tolerance<T>);
}

TYPED_TEST(cpu_attention, agrees_with_the_oracle_on_random_blocks) {
  test::random_source random{11};
  for (int trial = 0; trial < 60; ++trial) {
    block<TypeParam> b(test::random_block(random, 60), random);
    expect_oracle(b);
  }
}

TYPED_TEST(cpu_attention, agrees_with_the_oracle_across_tiles) {
  test::random_source random{12};
  for (int trial = 0; trial < 8; ++trial) {
    auto shape = test::random_block(random, 400);
    shape.heads = shape.kv_heads = 1;
    block<TypeParam> b(shape, random);
    expect_oracle(b);
  }
}

/// Columns [first, first + cols) of a block, keys and their gradients sharing its tensors.
block_shape columns_of(const block_shape& whole, std::int64_t first, std::int64_t cols) {
  auto part = whole;
  part.cols = cols;
  part.mask.key_first += first * whole.mask.key_stride;
  return part;
}

template <typename T>
tensor_view<T> from_token(tensor_view<T> view, std::int64_t token) {
  view.data = view.at(0, token, 0);
  return view;
}

TYPED_TEST(cpu_attention, parts_of_the_columns_merge_to_the_whole) {
  test::random_source random{13};
  for (int trial = 0; trial < 20; ++trial) {
    block<TypeParam> b(test::random_block(random, 90), random);
    SCOPED_TRACE(test::describe(b.shape));
    const auto rows = test::output_shape(b.shape);
    tensor<float> output(rows), query_gradient(test::query_shape(b.shape)),
        lse(test::row_shape(b.shape));
    fill(test::row_shape(b.shape), lse.view(), -infinity);
    std::vector<std::int64_t> cuts{0};
    while (cuts.back() < b.shape.cols) {
      cuts.push_back(cuts.back() + random.integer(1, b.shape.cols - cuts.back()));
    }
    for (std::size_t i = 1; i < cuts.size(); ++i) {
      const auto first = cuts[i - 1];
      attention_forward(columns_of(b.shape, first, cuts[i] - first), b.query.read(),
                        from_token(b.key.read(), first), from_token(b.value.read(), first),
                        b.output.view(), b.lse.view());
      merge(rows, output.view(), lse.view(), b.output.read(), b.lse.read());
    }
    cast(rows, b.output.view(), output.read());
    attention_delta(rows, b.output.read(), b.output_gradient.read(), b.delta.view());
    for (std::size_t i = 1; i < cuts.size(); ++i) {
      const auto first = cuts[i - 1];
      attention_backward(columns_of(b.shape, first, cuts[i] - first), b.query.read(),
                         from_token(b.key.read(), first), from_token(b.value.read(), first),
                         b.output_gradient.read(), lse.read(), b.delta.read(),
                         b.query_gradient.view(), from_token(b.key_gradient.view(), first),
                         from_token(b.value_gradient.view(), first));
      accumulate(test::query_shape(b.shape), query_gradient.view(), b.query_gradient.read());
    }
    const auto a = test::reference_of(b.shape);
    const auto expected = reference_forward(a, b.query.dense(), b.key.dense(), b.value.dense());
    const auto gradients = reference_backward(a, b.query.dense(), b.key.dense(), b.value.dense(),
                                              b.output_gradient.dense());
    EXPECT_LT(relative_error(output.dense(), expected.output), tolerance<TypeParam>);
    EXPECT_LT(relative_error(lse.dense(), expected.lse), 1e-5);
    EXPECT_LT(relative_error(query_gradient.dense(), gradients.query, dp_size),
              tolerance<TypeParam>);
    EXPECT_LT(relative_error(b.key_gradient.dense(), gradients.key, dp_size), tolerance<TypeParam>);
    EXPECT_LT(relative_error(b.value_gradient.dense(), gradients.value), tolerance<TypeParam>);
  }
}

TYPED_TEST(cpu_attention, rows_that_see_nothing_are_zero_and_give_no_gradient) {
  test::random_source random{14};
  // All keys come after all queries.
  const block_shape shape{.batch = 1,
                          .heads = 2,
                          .kv_heads = 1,
                          .head_dim = 8,
                          .rows = 5,
                          .cols = 7,
                          .mask = {.causal = true, .key_first = 5}};
  block<TypeParam> b(shape, random);
  b.forward();
  b.backward();
  EXPECT_THAT(b.output.dense(), Each(0));
  EXPECT_THAT(b.lse.dense(), Each(-infinity));
  EXPECT_THAT(b.query_gradient.dense(), Each(0));
  EXPECT_THAT(b.key_gradient.dense(), Each(0));
  EXPECT_THAT(b.value_gradient.dense(), Each(0));
}

TEST(attention_forward, two_keys_on_paper) {
  // Scores log 1 and log 3: O = 1/4 * 10 + 3/4 * 20 = 17.5, L = log 4.
  const block_shape shape{.head_dim = 1, .rows = 1, .cols = 2, .scale = 1};
  const float query = 1;
  const float key[] = {0, std::log(3.0f)};
  const float value[] = {10, 20};
  float output = 0;
  float lse = 0;
  attention_forward<float>(shape, {&query}, {key, 0, 1}, {value, 0, 1}, tensor_view<float>{&output},
                           {&lse});
  EXPECT_FLOAT_EQ(output, 17.5f);
  EXPECT_FLOAT_EQ(lse, std::log(4.0f));
}

TEST(attention_forward, scores_beyond_exp_do_not_overflow) {
  // Scores 1000 and 0: exp(1000) is no float, but L = 1000 and O is the first value.
  const block_shape shape{.head_dim = 1, .rows = 1, .cols = 2, .scale = 1};
  const float query = 1;
  const float key[] = {1000, 0};
  const float value[] = {10, 20};
  float output = 0;
  float lse = 0;
  attention_forward<float>(shape, {&query}, {key, 0, 1}, {value, 0, 1}, tensor_view<float>{&output},
                           {&lse});
  EXPECT_FLOAT_EQ(output, 10);
  EXPECT_FLOAT_EQ(lse, 1000);
}

TEST(attention, threads_do_not_change_a_bit) {
  test::random_source random{15};
  const block_shape shape{.batch = 2,
                          .heads = 6,
                          .kv_heads = 3,
                          .head_dim = 16,
                          .rows = 150,
                          .cols = 140,
                          .mask = {.causal = true}};
  block<float> one(shape, random);
  auto many = one;
  one.forward();
  one.backward();
  many.forward(4);
  many.backward(4);
  EXPECT_EQ(one.output.storage, many.output.storage);
  EXPECT_EQ(one.lse.storage, many.lse.storage);
  EXPECT_EQ(one.query_gradient.storage, many.query_gradient.storage);
  EXPECT_EQ(one.key_gradient.storage, many.key_gradient.storage);
  EXPECT_EQ(one.value_gradient.storage, many.value_gradient.storage);
}

TEST(attention, refuses_bad_shapes_before_touching_data) {
  const block_shape uneven{.heads = 3, .kv_heads = 2, .rows = 1, .cols = 1};
  const tensor_view<float> none;
  EXPECT_THAT(
      [&] { attention_forward<float>(uneven, {}, {}, {}, none, {}); },
      ThrowsMessage<std::invalid_argument>("attention block: kv_heads 2 does not divide heads 3"));
  EXPECT_THAT(
      [&] { attention_backward<float>({.rows = 1}, {}, {}, {}, {}, {}, {}, none, {}, {}); },
      ThrowsMessage<std::invalid_argument>("attention block: cols is 0, expected at least 1"));
}

}  // namespace cpu_attention_test
}  // namespace attnsim::kernels::cpu
