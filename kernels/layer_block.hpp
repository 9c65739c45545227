// What a transformer's layer does besides attention on one device, as every back end computes it. Matrices lie row by row without
// gaps, but for results of products; sums are fp32, and so are statistics and the gradients of norms' weights.
//
//   product          C = A B or C += A B
//   norm             x = residual + branch, s = 1 / sqrt(mean of x^2 + epsilon), y = x s w       (RMSNorm, arXiv 1910.07467)
//   norm gradient    dx = d_residual + s (w dy - x s^2 mean of (x w dy)), dw += sum over rows of x s dy
//   rotation         element d of the first half of a head and its partner d + head_dim / 2 turn by the token's angle d
//                    (RoPE, arXiv 2104.09864, in halves as Llama's checkpoints have it); `back` turns the other way: its gradient
//   gate             y = silu(g) u, silu(g) = g / (1 + exp(-g))                                     (SwiGLU, arXiv 2002.05202)
//   gate gradient    dg = dy u silu'(g), du = dy silu(g)
//   order            a copy of token i for each expert that it goes to, at its place: y_place(i, j) = x_i
//   expert sum       y_i = sum over j of w_ij x_place(i, j), w_i the softmax of the router's logits of the token's experts (Mixtral,
//                    arXiv 2401.04088); without logits w = 1, the gradient of an order
//   sum gradient     dx_place(i, j) = w_ij dy_i; of logits w_ij (d_ij - sum over k of w_ik d_ik), d_ij = <dy_i, x_place(i, j)>
#pragma once

#include <cstdint>

#include "kernels/attention_block.hpp"
#include "model/attention/attention.hpp"

namespace attnsim::kernels {

/// C is rows x cols. A is rows x inner, or transposed lies as inner x rows; B is inner x cols, or lies as cols x inner.
struct product_arguments {
  std::int64_t rows = 0, cols = 0, inner = 0;
  data_type type = data_type::bf16;  ///< of A and B
  const void* left = nullptr;        ///< A
  bool left_transposed = false;
  const void* right = nullptr;  ///< B
  bool right_transposed = false;
  data_type result_type = data_type::bf16;  ///< that of A and B, or fp32
  void* result = nullptr;                   ///< C
  std::int64_t result_stride = 0;  ///< elements from row to row of C; 0: cols, without gaps
  bool adds = false;

  std::int64_t stride() const { return result_stride > 0 ? result_stride : cols; }
};

inline constexpr float norm_epsilon = 1e-5f;

/// rows x width, all of one type but for `scale`, which is a number a row.
struct norm_arguments {
  std::int64_t rows = 0, width = 0;
  data_type type = data_type::bf16;
  const void* residual = nullptr;
  const void* branch = nullptr;
  const void* weight = nullptr;
  void* sum = nullptr;     ///< x
  void* result = nullptr;  ///< y
  float* scale = nullptr;  ///< s
};

struct norm_gradient_arguments {
  std::int64_t rows = 0, width = 0;
  data_type type = data_type::bf16;
  const void* sum = nullptr;
  const float* scale = nullptr;
  const void* weight = nullptr;
  const void* result_gradient = nullptr;    ///< dy
  const void* residual_gradient = nullptr;  ///< of what else reads x
  void* sum_gradient = nullptr;             ///< dx
  float* weight_gradient = nullptr;         ///< dw, added to
};

/// A row of inputs is g, then u, `width` elements each; their gradient lies likewise.
struct gate_arguments {
  std::int64_t rows = 0, width = 0;
  data_type type = data_type::bf16;
  const void* inputs = nullptr;
  void* result = nullptr;
};

struct gate_gradient_arguments {
  std::int64_t rows = 0, width = 0;
  data_type type = data_type::bf16;
  const void* inputs = nullptr;
  const void* result_gradient = nullptr;
  void* input_gradient = nullptr;
};

/// Where the copies of `rows` tokens lie: of token i for the j-th of its experts in row places[i active + j] of the ordered ones, and
/// which of a token's `experts` logits weighs it. Both lists are in device memory.
struct expert_places {
  std::int64_t rows = 0, active = 0, experts = 0;
  const std::int32_t* places = nullptr;
  const std::int32_t* chosen = nullptr;
};

struct expert_order_arguments {
  expert_places at;
  std::int64_t width = 0;
  data_type type = data_type::bf16;
  const void* tokens = nullptr;  ///< rows x width
  void* ordered = nullptr;       ///< rows active x width
};

struct expert_sum_arguments {
  expert_places at;
  std::int64_t width = 0;
  data_type type = data_type::bf16;
  const void* logits = nullptr;  ///< rows x experts; null: all weights are 1
  const void* ordered = nullptr;
  void* result = nullptr;
};

struct expert_sum_gradient_arguments {
  expert_places at;
  std::int64_t width = 0;
  data_type type = data_type::bf16;
  const void* logits = nullptr;
  const void* ordered = nullptr;
  const void* result_gradient = nullptr;
  void* ordered_gradient = nullptr;
  void* logits_gradient = nullptr;  ///< 0 for experts that a token does not go to
};

/// Refuse sizes below one, types in fp8, results of another type: std::invalid_argument naming the member.
void check(const product_arguments&);
void check(const norm_arguments&);
void check(const norm_gradient_arguments&);
void check(const gate_arguments&);
void check(const gate_gradient_arguments&);
void check(const expert_order_arguments&);
void check(const expert_sum_arguments&);
void check(const expert_sum_gradient_arguments&);
/// Also refuses heads of an odd number of elements.
void check_rotation(const token_shape&);

}  // namespace attnsim::kernels
