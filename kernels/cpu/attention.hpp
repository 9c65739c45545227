// Attention on one block on the CPU: the formulas of kernels/attention_block.hpp, tile by tile.
//
// T, the inputs' storage type, is float, bf16 or fp16; Result is T or float. A tile is converted to
// fp32 when it is loaded, all arithmetic is fp32 matrix products (Eigen), and a result is rounded
// once, when it is stored. Tiles the mask hides are skipped. Results don't depend on the number of
// threads.
//
// Results overwrite what was there. Tensors may be any strided views but must not overlap a result.
// Errors: std::invalid_argument as check(block_shape) says, before anything is written.
#pragma once

#include "kernels/attention_block.hpp"

namespace attnsim::kernels::cpu {

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
                        tensor_view<const T> output_gradient, tensor_view<const float> lse,
                        tensor_view<const float> delta, tensor_view<Result> query_gradient,
                        tensor_view<Result> key_gradient, tensor_view<Result> value_gradient,
                        int threads = 1);

}  // namespace attnsim::kernels::cpu
