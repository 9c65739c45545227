#include "kernels/cpu/layer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/each_head.hpp"
#include "kernels/cpu/each_type.hpp"
#include "kernels/with_type.hpp"

namespace attnsim::kernels::cpu {
namespace {

template <typename T>
const T* row_at(const void* data, std::int64_t width, std::int64_t i) {
  return static_cast<const T*>(data) + i * width;
}
template <typename T>
T* row_at(void* data, std::int64_t width, std::int64_t i) {
  return static_cast<T*>(data) + i * width;
}

template <typename T>
void norm_row(const norm_arguments& a, std::int64_t i) {
  const T *residual = row_at<T>(a.residual, a.width, i), *branch = row_at<T>(a.branch, a.width, i),
          *weight = row_at<T>(a.weight, a.width, 0);
  T *sum = row_at<T>(a.sum, a.width, i), *result = row_at<T>(a.result, a.width, i);
  float square = 0;
  for (std::int64_t k = 0; k < a.width; ++k) {
    sum[k] = T(float{residual[k]} + float{branch[k]});
    square += float{sum[k]} * float{sum[k]};
  }
  const float scale = 1 / std::sqrt(square / static_cast<float>(a.width) + norm_epsilon);
  a.scale[i] = scale;
  for (std::int64_t k = 0; k < a.width; ++k)
    result[k] = T(float{sum[k]} * scale * float{weight[k]});
}

template <typename T>
void norm_gradient_row(const norm_gradient_arguments& a, std::int64_t i) {
  const T *x = row_at<T>(a.sum, a.width, i), *dy = row_at<T>(a.result_gradient, a.width, i),
          *w = row_at<T>(a.weight, a.width, 0), *other = row_at<T>(a.residual_gradient, a.width, i);
  T* dx = row_at<T>(a.sum_gradient, a.width, i);
  const float s = a.scale[i];
  float dot = 0;
  for (std::int64_t k = 0; k < a.width; ++k) dot += float{x[k]} * float{w[k]} * float{dy[k]};
  const float along = dot / static_cast<float>(a.width) * s * s;
  for (std::int64_t k = 0; k < a.width; ++k) {
    a.weight_gradient[k] += float{x[k]} * s * float{dy[k]};
    dx[k] = T(float{other[k]} + s * (float{w[k]} * float{dy[k]} - float{x[k]} * along));
  }
}

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

template <typename T>
void gate_row(const gate_arguments& a, std::int64_t i) {
  const T *g = row_at<T>(a.inputs, 2 * a.width, i), *u = g + a.width;
  T* y = row_at<T>(a.result, a.width, i);
  for (std::int64_t k = 0; k < a.width; ++k)
    y[k] = T(float{g[k]} * sigmoid(float{g[k]}) * float{u[k]});
}

template <typename T>
void gate_gradient_row(const gate_gradient_arguments& a, std::int64_t i) {
  const T *g = row_at<T>(a.inputs, 2 * a.width, i), *u = g + a.width,
          *dy = row_at<T>(a.result_gradient, a.width, i);
  T *dg = row_at<T>(a.input_gradient, 2 * a.width, i), *du = dg + a.width;
  for (std::int64_t k = 0; k < a.width; ++k) {
    const float x = g[k], s = sigmoid(x), y = dy[k];
    dg[k] = T(y * float{u[k]} * s * (1 + x * (1 - s)));
    du[k] = T(y * x * s);
  }
}

/// Of a token's copies.
template <typename T>
std::vector<float> weights_of(const expert_places& at, const void* logits, std::int64_t token) {
  std::vector<float> weights(static_cast<std::size_t>(at.active), 1.0F);
  if (logits == nullptr) return weights;
  const T* row = row_at<T>(logits, at.experts, token);
  float largest = -std::numeric_limits<float>::infinity(), sum = 0;
  for (std::int64_t j = 0; j < at.active; ++j) {
    auto& weight = weights[static_cast<std::size_t>(j)];
    weight = float{row[at.chosen[token * at.active + j]]};
    largest = std::max(largest, weight);
  }
  for (auto& weight : weights) sum += weight = std::exp(weight - largest);
  for (auto& weight : weights) weight /= sum;
  return weights;
}

template <typename T>
void order_token(const expert_order_arguments& a, std::int64_t i) {
  const T* from = row_at<T>(a.tokens, a.width, i);
  for (std::int64_t j = 0; j < a.at.active; ++j)
    std::copy_n(from, a.width, row_at<T>(a.ordered, a.width, a.at.places[i * a.at.active + j]));
}

template <typename T>
void sum_token(const expert_sum_arguments& a, std::int64_t i) {
  const auto weights = weights_of<T>(a.at, a.logits, i);
  std::vector<float> sum(static_cast<std::size_t>(a.width));
  for (std::int64_t j = 0; j < a.at.active; ++j) {
    const T* x = row_at<T>(a.ordered, a.width, a.at.places[i * a.at.active + j]);
    for (std::size_t k = 0; k < sum.size(); ++k)
      sum[k] += weights[static_cast<std::size_t>(j)] * float{x[k]};
  }
  T* result = row_at<T>(a.result, a.width, i);
  for (std::size_t k = 0; k < sum.size(); ++k) result[k] = T(sum[k]);
}

template <typename T>
void sum_gradient_of_token(const expert_sum_gradient_arguments& a, std::int64_t i) {
  const auto weights = weights_of<T>(a.at, a.logits, i);
  const T* dy = row_at<T>(a.result_gradient, a.width, i);
  std::vector<float> slopes;
  float mean = 0;
  for (std::int64_t j = 0; j < a.at.active; ++j) {
    const auto place = a.at.places[i * a.at.active + j];
    const float weight = weights[static_cast<std::size_t>(j)];
    const T* x = row_at<T>(a.ordered, a.width, place);
    T* dx = row_at<T>(a.ordered_gradient, a.width, place);
    float slope = 0;
    for (std::int64_t k = 0; k < a.width; ++k) {
      slope += float{dy[k]} * float{x[k]};
      dx[k] = T(weight * float{dy[k]});
    }
    slopes.push_back(slope);
    mean += weight * slope;
  }
  T* of_logits = row_at<T>(a.logits_gradient, a.at.experts, i);
  std::fill_n(of_logits, a.at.experts, T(0.0F));
  for (std::size_t j = 0; j < slopes.size(); ++j)
    of_logits[a.at.chosen[i * a.at.active + static_cast<std::int64_t>(j)]] =
        T(weights[j] * (slopes[j] - mean));
}

}  // namespace

void norm(const norm_arguments& a) {
  with_type(a.type, [&]<typename T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < a.rows; ++i) norm_row<T>(a, i);
  });
}

void norm_gradient(const norm_gradient_arguments& a) {
  with_type(a.type, [&]<typename T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < a.rows; ++i) norm_gradient_row<T>(a, i);
  });
}

void gate(const gate_arguments& a) {
  with_type(a.type, [&]<typename T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < a.rows; ++i) gate_row<T>(a, i);
  });
}

void gate_gradient(const gate_gradient_arguments& a) {
  with_type(a.type, [&]<typename T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < a.rows; ++i) gate_gradient_row<T>(a, i);
  });
}

void order_tokens(const expert_order_arguments& a) {
  with_type(a.type, [&]<typename T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < a.at.rows; ++i) order_token<T>(a, i);
  });
}

void sum_experts(const expert_sum_arguments& a) {
  with_type(a.type, [&]<typename T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < a.at.rows; ++i) sum_token<T>(a, i);
  });
}

void sum_experts_gradient(const expert_sum_gradient_arguments& a) {
  with_type(a.type, [&]<typename T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < a.at.rows; ++i) sum_gradient_of_token<T>(a, i);
  });
}

template <typename To, typename From>
void rotate(const token_shape& shape, tensor_view<To> destination, tensor_view<const From> source,
            const float* angles, bool back) {
  const std::int64_t half = shape.head_dim / 2;
  for_each_head(shape, [&](std::int64_t batch, std::int64_t token, std::int64_t head) {
    const From* from = source.at(batch, token, head);
    To* to = destination.at(batch, token, head);
    const float *cosines = angles + token * shape.head_dim, *sines = cosines + half;
    for (std::int64_t d = 0; d < half; ++d) {
      const float x = from[d], y = from[d + half], sine = back ? -sines[d] : sines[d];
      to[d] = To(x * cosines[d] - y * sine);
      to[d + half] = To(y * cosines[d] + x * sine);
    }
  });
}

#define ATTNSIM_INSTANTIATE(To, From)                                                              \
  template void rotate(const token_shape&, tensor_view<To>, tensor_view<const From>, const float*, \
                       bool);
ATTNSIM_EACH_TYPE_PAIR(ATTNSIM_INSTANTIATE)
#undef ATTNSIM_INSTANTIATE

}  // namespace attnsim::kernels::cpu
