// Attention on one block, as every back end (cpu, cuda, cudnn) computes it:
//
//   S[i,j] = scale * <Q_i, K_j>            where the mask shows column j to row i, -inf elsewhere
//   L_i    = log sum_j exp(S[i,j])          log-sum-exp (natural logarithm), fp32; -inf when row i sees nothing
//   O_i    = sum_j exp(S[i,j] - L_i) V_j    0 when row i sees nothing
//
// Backward takes dO, the L of the *whole* row (all its blocks merged) and delta_i = <dO_i, O_i> of the whole row:
//
//   P[i,j]  = exp(S[i,j] - L_i)             dV_j = sum_i P[i,j] dO_i
//   dS[i,j] = P[i,j] (<dO_i, V_j> - delta_i)
//   dQ_i    = scale * sum_j dS[i,j] K_j     dK_j = scale * sum_i dS[i,j] Q_i
//
// so a block's dQ is a partial sum over blocks of the same rows, and dK, dV over blocks of the same columns.
// Grouped-query attention: query head h uses key head h / (heads / kv_heads); dK, dV sum over their query heads.
// FlashAttention-2 (arXiv 2307.08691), algorithms 1 and 2.
#pragma once

#include <cstdint>

#include "model/attention/block_mask.hpp"

namespace attnsim::kernels {

/// Element (batch b, token t, head h, d) of a tensor lies at data[b*batch_stride + t*token_stride + h*head_stride + d];
/// strides in elements. Row statistics (L, delta) use the same form with one element a head.
template <typename T>
struct tensor_view {
  T* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;

  T* at(std::int64_t batch, std::int64_t token, std::int64_t head) const {
    return data + batch * batch_stride + token * token_stride + head * head_stride;
  }
};

struct block_shape {
  std::int64_t batch = 1;
  std::int64_t heads = 1;       ///< query heads
  std::int64_t kv_heads = 1;    ///< divides heads
  std::int64_t head_dim = 128;  ///< of Q and K
  std::int64_t v_head_dim = 0;  ///< of V and O; 0: as head_dim
  std::int64_t rows = 0;        ///< query tokens
  std::int64_t cols = 0;        ///< key tokens
  block_mask mask;
  float scale = 0;  ///< 0: 1 / sqrt(head_dim)

  std::int64_t value_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
};

/// What a merge, a sum or a cast runs over: head_dim elements of every head of every token.
struct token_shape {
  std::int64_t batch = 1;
  std::int64_t tokens = 0;
  std::int64_t heads = 1;
  std::int64_t head_dim = 128;
};

/// What keys and values are made of latents with: kernels/cpu/expand.hpp.
struct expand_shape {
  std::int64_t batch = 1;
  std::int64_t count = 0;  ///< tokens
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 128;    ///< of K
  std::int64_t v_head_dim = 128;  ///< of V
  std::int64_t rank = 0;          ///< elements of a latent
  std::int64_t rotary = 0;        ///< elements of K that lie beside it

  token_shape tokens() const {
    return {.batch = batch, .tokens = count, .heads = kv_heads, .head_dim = head_dim};
  }
};

/// The factor of <Q_i, K_j>, with the default filled in.
float softmax_scale(const block_shape& shape);

/// Refuses sizes below one, kv_heads that don't divide heads and what check(block_mask) refuses:
/// std::invalid_argument naming the member. Every kernel calls it first.
void check(const block_shape& shape);
void check(const token_shape& shape);
/// And more rotary elements than a key has.
void check(const expand_shape& shape);

/// Also refuses to interleave `parts` runs of tokens if they don't divide them.
void check(const token_shape& shape, std::int64_t parts);

/// Refuses a part that is none of `parts`.
void check_part(std::int64_t parts, std::int64_t part);

}  // namespace attnsim::kernels
