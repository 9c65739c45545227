// How the memory-bound kernels read, write and share out tensors: a thread moves 8 elements (16 bytes of bf16); element types are told
// apart at run time, which costs nothing beside the memory.
#pragma once

#include <algorithm>

#include "kernels/cuda/block.cuh"
#include "model/error.hpp"

namespace attnsim::kernels::cuda::elementwise {

constexpr int threads = 256;

/// A tensor as a kernel sees it.
struct operand {
  void* data;
  std::int64_t stride[3];
  element type;

  operand(const tensor& t)
      : data(t.view.data),
        stride{t.view.batch_stride, t.view.token_stride, t.view.head_stride},
        type(t.type) {}
  template <class T>
  operand(const tensor_view<T>& view)
      : data(const_cast<void*>(static_cast<const void*>(view.data))),
        stride{view.batch_stride, view.token_stride, view.head_stride},
        type(element::fp32) {}

  __device__ float* statistic(int b, std::int64_t t, int h) const {
    return at<float>(data, stride, b, t, h);
  }

  __device__ void load(float (&x)[8], int b, std::int64_t t, int h, int d) const {
    if (type == element::fp32) {
      const float4* from = reinterpret_cast<const float4*>(at<float>(data, stride, b, t, h) + d);
      const float4 low = from[0], high = from[1];
      x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
      x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
      return;
    }
    const uint4 raw = *reinterpret_cast<const uint4*>(at<__half>(data, stride, b, t, h) + d);
    const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair =
          type == element::bf16
              ? __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&words[i]))
              : __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
      x[2 * i] = pair.x, x[2 * i + 1] = pair.y;
    }
  }
  __device__ void store(const float (&x)[8], int b, std::int64_t t, int h, int d) const {
    if (type == element::fp32) {
      float4* to = reinterpret_cast<float4*>(at<float>(data, stride, b, t, h) + d);
      to[0] = make_float4(x[0], x[1], x[2], x[3]);
      to[1] = make_float4(x[4], x[5], x[6], x[7]);
      return;
    }
    std::uint32_t w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w[i] = type == element::bf16 ? pack<__nv_bfloat16>(x[2 * i], x[2 * i + 1])
                                   : pack<__half>(x[2 * i], x[2 * i + 1]);
    }
    *reinterpret_cast<uint4*>(at<__half>(data, stride, b, t, h) + d) =
        make_uint4(w[0], w[1], w[2], w[3]);
  }
};

struct sizes {
  std::int64_t tokens;
  int batch, heads, chunks;  // chunks of 8 elements a head
};

/// Runs body(batch, token, head, d) for every 8 elements, head fastest after d. Dependent: see launch_dependent().
template <bool Dependent, class Body>
__global__ void __launch_bounds__(threads) each_chunk(sizes s, Body body) {
  if (Dependent) wait_for_predecessors();
  const std::int64_t count = s.batch * s.tokens * s.heads * s.chunks;
  for (std::int64_t i = blockIdx.x * std::int64_t{threads} + threadIdx.x; i < count;
       i += gridDim.x * std::int64_t{threads}) {
    const std::int64_t row = i / s.chunks;
    const std::int64_t token = row / s.heads;
    body(static_cast<int>(token / s.tokens), token % s.tokens, static_cast<int>(row % s.heads),
         static_cast<int>(i % s.chunks) * 8);
  }
}

template <class Body>
void run(const extents& shape, cudaStream_t queue, const char* what, Body body,
         bool dependent = false) {
  const sizes s{shape.tokens, static_cast<int>(shape.batch), static_cast<int>(shape.heads),
                static_cast<int>(std::max<std::int64_t>(shape.head_dim / 8, 1))};
  const std::int64_t count = shape.batch * shape.tokens * shape.heads * s.chunks;
  if (count == 0) return;
  if (shape.head_dim != 1 && shape.head_dim % 8 != 0) {
    throw infeasible(std::string(what) + ": head_dim must be 1 or a multiple of 8");
  }
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>((count + threads - 1) / threads, 132 * 64));
  if (dependent)
    return launch_dependent(each_chunk<true, Body>, blocks, threads, 0, queue, what, s, body);
  each_chunk<false><<<blocks, threads, 0, queue>>>(s, body);
  check(cudaGetLastError(), what);
}

}  // namespace attnsim::kernels::cuda::elementwise
