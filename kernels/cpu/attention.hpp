// Attention on one block on the CPU: the formulas of kernels/attention_block.hpp, tile by tile.
//
// T, the inputs' storage type, is float, bf16, fp16 or e4m3; Result is T, bf16 of e4m3, or float. A tile is converted to
// fp32 when it is loaded, all arithmetic is fp32 matrix products (Eigen), and a result is rounded
// once, when it is stored. Tiles the mask hides are skipped. Results don't depend on the number of
// threads.
//
// In fp8 every product has e4m3 on both sides: probabilities are rounded before they meet values, and backward dO, probabilities and dS,
// the latter and dO scaled by a power of two so that a tile's largest is near e4m3's, as kernels with current scaling do.
//
// Results overwrite what was there. Tensors may be any strided views but must not overlap a result.
// Errors: std::invalid_argument as check(block_shape) says, before anything is written.
#pragma once

#include <type_traits>

#include "kernels/attention_block.hpp"
#include "kernels/float16.hpp"
#include "kernels/float8.hpp"

namespace attnsim::kernels::cpu {

/// Of output gradients beside inputs of a type.
template <typename T>
using gradient_of = std::conditional_t<std::is_same_v<T, e4m3>, bf16, T>;

/// O and L of the block. Shapes [batch, token, head, d]:
///   query   [batch, rows, heads, head_dim]     output  [batch, rows, heads, v_head_dim]
///   key     [batch, cols, kv_heads, head_dim]  value   [batch, cols, kv_heads, v_head_dim]
///   lse     [batch, rows, heads]
/// Threads share out batch x heads.
template <typename T, typename Result>
void attention_forward(const block_shape& shape, tensor_view<const T> query,
                       tensor_view<const T> key, tensor_view<const T> value,
                       tensor_view<Result> output, tensor_view<float> lse, int threads = 1);

/// The block's parts of dQ, dK and dV, shaped as query, key and value. lse and delta are those of
/// the *whole* rows. Threads share out batch x kv_heads; each holds two fp32 matrices of cols x
/// head_dim and cols x v_head_dim.
template <typename T, typename Result>
void attention_backward(const block_shape& shape, tensor_view<const T> query,
                        tensor_view<const T> key, tensor_view<const T> value,
                        tensor_view<const gradient_of<T>> output_gradient,
                        tensor_view<const float> lse, tensor_view<const float> delta,
                        tensor_view<Result> query_gradient, tensor_view<Result> key_gradient,
                        tensor_view<Result> value_gradient, int threads = 1);

}  // namespace attnsim::kernels::cpu
