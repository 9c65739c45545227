// Random blocks and tensors for the kernels' tests, and the oracle's view of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/attention_block.hpp"
#include "kernels/cpu/reference.hpp"

namespace attnsim::kernels::test {

class random_source {
 public:
  explicit random_source(std::uint64_t seed) : engine_{seed} {}

  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>{low, high}(engine_);
  }
  float normal() { return std::normal_distribution<float>{}(engine_); }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

/// A tensor in one of the layouts views must cope with: [b][t][h][d] or [b][h][t][d], with gaps
/// between tokens.
template <typename T>
struct tensor {
  token_shape shape;
  tensor_view<T> strides;  ///< data unset
  std::vector<T> storage;

  tensor(const token_shape& s, bool heads_outside = false, std::int64_t gap = 0) : shape(s) {
    const std::int64_t head = s.head_dim + gap;
    strides.head_stride = heads_outside ? s.tokens * head : head;
    strides.token_stride = heads_outside ? head : s.heads * head;
    strides.batch_stride = s.tokens * s.heads * head;
    storage.resize(s.batch * strides.batch_stride);
  }

  tensor_view<T> view() {
    auto result = strides;
    result.data = storage.data();
    return result;
  }
  tensor_view<const T> view() const {
    return {storage.data(), strides.batch_stride, strides.token_stride, strides.head_stride};
  }
  tensor_view<const T> read() const { return view(); }

  /// Elements in [b][t][h][d] order.
  std::vector<double> dense() const {
    std::vector<double> result;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      for (std::int64_t t = 0; t < shape.tokens; ++t) {
        for (std::int64_t h = 0; h < shape.heads; ++h) {
          const T* head = view().at(b, t, h);
          result.insert(result.end(), head, head + shape.head_dim);
        }
      }
    }
    return result;
  }
};

template <typename T>
tensor<T> random_tensor(const token_shape& shape, random_source& random) {
  tensor<T> result(shape, random.integer(0, 1) == 1, random.integer(0, 2));
  for (T& x : result.storage) x = static_cast<T>(random.normal());
  return result;
}

inline token_shape query_shape(const block_shape& s) {
  return {s.batch, s.rows, s.heads, s.head_dim};
}
inline token_shape key_shape(const block_shape& s) {
  return {s.batch, s.cols, s.kv_heads, s.head_dim};
}
inline token_shape output_shape(const block_shape& s) {
  return {s.batch, s.rows, s.heads, s.value_dim()};
}
inline token_shape value_shape(const block_shape& s) {
  return {s.batch, s.cols, s.kv_heads, s.value_dim()};
}
inline token_shape row_shape(const block_shape& s) {
  return {s.batch, s.rows, s.heads, 1};
}

inline block_mask random_mask(random_source& random) {
  return {.causal = random.integer(0, 3) > 0,
          .query_first = random.integer(-100, 100),
          .query_stride = random.integer(1, 4),
          .key_first = random.integer(-100, 100),
          .key_stride = random.integer(1, 4),
          .window = random.integer(0, 1) * random.integer(1, 200)};
}

inline block_shape random_block(random_source& random, std::int64_t most_tokens) {
  const std::int64_t kv_heads = random.integer(1, 3);
  return {.batch = random.integer(1, 2),
          .heads = kv_heads * random.integer(1, 3),
          .kv_heads = kv_heads,
          .head_dim = random.integer(1, 48),
          .v_head_dim = random.integer(0, 1) * random.integer(1, 48),
          .rows = random.integer(1, most_tokens),
          .cols = random.integer(1, most_tokens),
          .mask = random_mask(random),
          .scale = random.integer(0, 1) * 0.25f};
}

inline cpu::reference_attention reference_of(const block_shape& s) {
  cpu::reference_attention result{.batch = s.batch,
                                  .heads = s.heads,
                                  .kv_heads = s.kv_heads,
                                  .head_dim = s.head_dim,
                                  .v_head_dim = s.v_head_dim,
                                  .causal = s.mask.causal,
                                  .window = s.mask.window,
                                  .scale = s.scale};
  for (std::int64_t i = 0; i < s.rows; ++i) {
    result.query_positions.push_back(s.mask.query_first + i * s.mask.query_stride);
  }
  for (std::int64_t j = 0; j < s.cols; ++j) {
    result.key_positions.push_back(s.mask.key_first + j * s.mask.key_stride);
  }
  return result;
}

/// |x - expected| / |expected| in the Euclidean norm; equal infinities differ by nothing. `size` is
/// a lower bound for the root mean square of expected, for results that are small differences of
/// larger numbers.
inline double relative_error(std::span<const double> x, std::span<const double> expected,
                             double size = 0) {
  if (x.size() != expected.size()) return INFINITY;
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == expected[i] && std::isinf(x[i])) continue;
    difference += (x[i] - expected[i]) * (x[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  norm = std::max(norm, size * size * static_cast<double>(x.size()));
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

inline std::string describe(const block_shape& s) {
  const auto& m = s.mask;
  return fmt::format(
      "batch {}, heads {}/{}, head_dim {}/{}, {} x {}, causal {}, queries {}+{}i, keys {}+{}j, "
      "window "
      "{}, scale {}",
      s.batch, s.heads, s.kv_heads, s.head_dim, s.value_dim(), s.rows, s.cols, m.causal,
      m.query_first, m.query_stride, m.key_first, m.key_stride, m.window, s.scale);
}

}  // namespace attnsim::kernels::test
