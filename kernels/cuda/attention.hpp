// Attention on one block on an NVIDIA GPU: forward, backward and the memory-bound operations around them.
//
// Everything is enqueued on a stream and returns at once; nothing is allocated. Tensors lie in device memory as
// tensor_view says: head_dim contiguous, addresses and strides multiples of 16 bytes. Q, K, V and dO are bf16 or
// fp16, sums are fp32, L and delta are fp32. O, dQ, dK, dV are of the inputs' type or fp32, and written whole.
//
//   head_dim        64, 128: both paths; 96, 256: generic path only; values as wide as keys
//   rows, cols      any; heads a multiple of kv_heads
//   masks           every block_mask with positive strides, by either path; tiles nothing is visible in are skipped
//
//   path            architecture    instructions                       files
//   generic         sm_80 and on    mma.sync, cp.async                 generic_forward.cuh, generic_backward.cuh
//   hopper          sm_90 alone     wgmma, TMA, mbarrier, setmaxnreg   hopper_forward.cuh, hopper_backward.cuh
//
// How they fill a device: the hopper forward is persistent, one block a multiprocessor, tiles taken from a counter; the
// others are launched in waves of blocks. Backward is three kernels: a prologue that zeroes the fp32 sum of dQ, the
// kernel itself, an epilogue that converts dQ. It adds to that sum in any order: two runs differ by rounding.
//
// Errors: infeasible for what no kernel here does (head_dim, alignment), std::runtime_error for CUDA's own errors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention_block.hpp"

struct CUstream_st;

namespace attnsim::kernels::cuda {

using stream = CUstream_st*;  ///< cudaStream_t

enum class element : std::uint8_t { bf16, fp16, fp32 };

constexpr std::size_t size_of(element type) {
  return type == element::fp32 ? 4 : 2;
}

enum class path : std::uint8_t { automatic, generic, hopper };

struct forward_arguments {
  block_shape shape;
  element type = element::bf16;    ///< of q, k, v
  element output = element::bf16;  ///< of o: `type` or fp32
  tensor_view<const void> q;       ///< (batch, rows, heads, head_dim)
  tensor_view<const void> k;       ///< (batch, cols, kv_heads, head_dim)
  tensor_view<const void> v;       ///< (batch, cols, kv_heads, head_dim)
  tensor_view<void> o;             ///< (batch, rows, heads, head_dim)
  tensor_view<float> l;            ///< (batch, rows, heads)
};

struct backward_arguments {
  block_shape shape;
  element type = element::bf16;      ///< of q, k, v, d_o, o
  element gradient = element::bf16;  ///< of d_q, d_k, d_v: `type` or fp32
  tensor_view<const void> q;
  tensor_view<const void> k;
  tensor_view<const void> v;
  tensor_view<const void> d_o;
  tensor_view<const void> o;   ///< of the whole row; not read where delta is given, always by cudnn
  tensor_view<const float> l;  ///< of the whole row
  tensor_view<const float>
      delta;  ///< of the whole row, from row_dot(); without memory: computed from o here
  tensor_view<void> d_q;
  tensor_view<void> d_k;
  tensor_view<void> d_v;
};

/// Whether the hopper path serves this shape on the current device; `automatic` takes it where it does.
bool hopper_available(const block_shape& shape);

void forward(const forward_arguments& arguments, stream queue, path which = path::automatic);

/// Bytes of workspace, 256-byte aligned, that backward() needs: an fp32 dQ and packed row statistics.
std::size_t backward_workspace(const block_shape& shape);

void backward(const backward_arguments& arguments, void* workspace, stream queue,
              path which = path::automatic);

/// A tensor of (batch, tokens, heads, head_dim) of some element type; head_dim 1 for row statistics.
struct tensor {
  element type = element::bf16;
  tensor_view<void> view;
};
struct extents {
  std::int64_t batch = 1;
  std::int64_t tokens = 0;
  std::int64_t heads = 1;
  std::int64_t head_dim = 128;  ///< a multiple of 8, or 1
};

/// delta_i = <dO_i, O_i>.
void row_dot(const extents& shape, const tensor& d_o, const tensor& o, tensor_view<float> delta,
             stream queue);

/// (O, L) <- merge of (O, L) and the partial result (part, part_l):
/// L' = log(exp(L) + exp(part_l)), O' = exp(L - L') O + exp(part_l - L') part.
void merge(const extents& shape, const tensor& o, tensor_view<float> l, const tensor& part,
           tensor_view<const float> part_l, stream queue);

/// L <- log-sum-exp of the `parts` runs of tokens in part_l, O <- exp(part_l of run `own` - L) O.
void weigh(const extents& shape, const tensor& o, tensor_view<const float> part_l,
           std::int64_t parts, std::int64_t own, tensor_view<float> l, stream queue);

/// to <- to + from.
void accumulate(const extents& shape, const tensor& to, const tensor& from, stream queue);

/// to <- from, of whatever types and strides. Row statistics: head_dim 1, fp32.
void copy(const extents& shape, const tensor& to, const tensor& from, stream queue);

/// to[i] <- from[(i % parts) * (tokens / parts) + i / parts]: `parts` consecutive runs of tokens dealt out like cards,
/// the striped layout gathered from its ranks. deinterleave() is its inverse.
void interleave(const extents& shape, std::int64_t parts, const tensor& to, const tensor& from,
                stream queue);
void deinterleave(const extents& shape, std::int64_t parts, const tensor& to, const tensor& from,
                  stream queue);

/// O = 0 and, where `l` has memory, L = -inf: the merge's neutral element.
void clear(const extents& shape, const tensor& o, tensor_view<float> l, stream queue);

}  // namespace attnsim::kernels::cuda
