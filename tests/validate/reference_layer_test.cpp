#include "validate/layer/reference_layer.hpp"

#include <gtest/gtest.h>

#include "tests/validate/small_layers.hpp"
#include "validate/made_numbers.hpp"

namespace attnsim::validate {
namespace reference_layer_test {

numbers made(std::int64_t count, std::uint64_t seed, double middle = 0) {
  numbers list;
  for (std::int64_t i = 0; i < count; ++i)
    list.push_back(middle + 0.5 * mixed(seed << 32 ^ static_cast<std::uint64_t>(i)));
  return list;
}

reference_input made_input(const transformer& model) {
  reference_input in{.model = model, .tokens = 4, .batch = 2};
  const auto count = in.tokens * in.batch * model.hidden;
  in.residual = made(count, 1);
  in.branch = made(count, 2);
  in.output_gradient = made(count, 3);
  const parameter_layout layout(layer_setting{.model = model});
  for (const auto p : all_parameters)
    in.parameters[static_cast<std::size_t>(p)] =
        made(layout.of(p).elements(), 4 + static_cast<std::uint64_t>(p), is_norm(p) ? 1 : 0);
  return in;
}

/// What the gradients are of.
double loss(const reference_input& in) {
  const auto r = reference_layer(in);
  double sum = 0;
  for (std::size_t i = 0; i < in.output_gradient.size(); ++i)
    sum += in.output_gradient[i] * (r.attention_sum[i] + r.mlp_output[i]);
  return sum;
}

void expect_slopes(const transformer& model) {
  auto in = made_input(model);
  const auto r = reference_layer(in);
  const auto check = [&](numbers& values, const numbers& gradient, std::string_view what) {
    ASSERT_EQ(values.size(), gradient.size()) << what;
    for (std::size_t i = 0; i < values.size(); i += values.size() / 7) {
      constexpr double step = 1e-5;
      const double before = values[i];
      values[i] = before + step;
      const double above = loss(in);
      values[i] = before - step;
      const double below = loss(in);
      values[i] = before;
      EXPECT_NEAR((above - below) / (2 * step), gradient[i], 1e-7) << what << " " << i;
    }
  };
  check(in.residual, r.input_gradient, "residual");
  check(in.branch, r.input_gradient, "branch");
  for (const auto p : all_parameters)
    check(in.parameters[static_cast<std::size_t>(p)],
          r.parameter_gradients[static_cast<std::size_t>(p)], name_of(p));
}

TEST(reference_layer, gradients_are_slopes) {
  expect_slopes(small_model());
}

TEST(reference_layer, gradients_of_experts_are_slopes) {
  expect_slopes(small_expert_model());
}

}  // namespace reference_layer_test
}  // namespace attnsim::validate
