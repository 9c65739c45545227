// What every kernel of this folder shares: its parameters, the mask in 32-bit positions, element types, conversion.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/attention.hpp"

namespace attnsim::kernels::cuda {

/// block_mask with the first key at position 0: row i is at first + i * row_step, column j at j * col_step.
struct positions {
  int causal, first, row_step, col_step, window;

  __host__ __device__ int row(int i) const { return first + i * row_step; }
  __host__ __device__ bool visible(int i, int j) const {
    if (!causal) return true;
    const int key = j * col_step, query = row(i);
    return key <= query && (window == 0 || key > query - window);
  }
  /// Whether every row of [i0, i1] sees every column of [j0, j1].
  __host__ __device__ bool all_visible(int i0, int i1, int j0, int j1) const {
    if (!causal) return true;
    return j1 * col_step <= row(i0) && (window == 0 || j0 * col_step > row(i1) - window);
  }
  /// Columns [begin, end) that some row of [i0, i1] may see.
  __host__ __device__ void columns(int i0, int i1, int cols, int& begin, int& end) const {
    begin = 0;
    end = cols;
    if (!causal) return;
    const int last = row(i1);
    end = last < 0 ? 0 : min_of(cols, last / col_step + 1);
    const int left = row(i0) - window;
    if (window != 0 && left >= 0) begin = left / col_step + 1;
  }
  /// Rows [begin, end) that may see some column of [j0, j1].
  __host__ __device__ void rows(int j0, int j1, int count, int& begin, int& end) const {
    begin = 0;
    end = count;
    if (!causal) return;
    const int ahead = j0 * col_step - first;
    if (ahead > 0) begin = (ahead + row_step - 1) / row_step;
    const int beyond =
        j1 * col_step + window - first;  // rows at or past it see nothing of the tile
    if (window != 0) end = beyond <= 0 ? 0 : min_of(count, (beyond + row_step - 1) / row_step);
  }
  __host__ __device__ static int min_of(int a, int b) { return a < b ? a : b; }
};

struct forward_parameters {
  const void *q, *k, *v;
  void* o;
  float* l;
  std::int64_t q_stride[3], k_stride[3], v_stride[3], o_stride[3],
      l_stride[3];  // batch, token, head
  int batch, heads, kv_heads, rows, cols;
  int fp32_output;
  float scale;
  positions mask;
};

struct backward_parameters {
  const void *q, *k, *v, *d_o;
  void *d_k, *d_v;
  const float *l,
      *delta;  // packed: [batch][heads][padded_rows], L in base 2, +inf where a row sees nothing
  float* d_q;  // fp32 sum, [batch][heads] of padded_rows x head_dim, permuted: see the kernels
  std::int64_t q_stride[3], k_stride[3], v_stride[3], d_o_stride[3], d_k_stride[3], d_v_stride[3];
  int batch, heads, kv_heads, rows, cols, padded_rows;
  int fp32_gradient;
  float scale;
  positions mask;
};

constexpr int row_padding =
    128;  // rows of the packed statistics and of dQ are padded to a multiple of this

template <class T>
__device__ inline const T* at(const void* data, const std::int64_t (&stride)[3], int batch,
                              std::int64_t token, int head) {
  return static_cast<const T*>(data) + batch * stride[0] + token * stride[1] + head * stride[2];
}
template <class T>
__device__ inline T* at(void* data, const std::int64_t (&stride)[3], int batch, std::int64_t token,
                        int head) {
  return static_cast<T*>(data) + batch * stride[0] + token * stride[1] + head * stride[2];
}

template <class T>
__device__ inline std::uint32_t pack(float low, float high);
template <>
__device__ inline std::uint32_t pack<__nv_bfloat16>(float low, float high) {
  std::uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
template <>
__device__ inline std::uint32_t pack<__half>(float low, float high) {
  std::uint32_t result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

constexpr float log2_e = 1.4426950408889634f;

/// Softmax over the columns of an m16n8-shaped accumulator (also wgmma's m64nN): a thread holds two rows, elements
/// 4 i + {0, 1} of the first and 4 i + {2, 3} of the second; four neighbouring lanes share a row.
struct online_softmax {
  float high[2] = {-INFINITY, -INFINITY};  // running maximum of the unscaled scores
  float sum[2] = {0, 0};                   // this thread's part of the running sum

  /// scores <- exp2(scale * (scores - maximum)); factor: what earlier sums and O shrink by.
  template <int Count>
  __device__ void step(float (&scores)[Count], float scale, float (&factor)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float m = high[r];
#pragma unroll
      for (int i = 0; i < Count / 4; ++i)
        m = fmaxf(m, fmaxf(scores[4 * i + 2 * r], scores[4 * i + 2 * r + 1]));
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
      const float shift = m == -INFINITY ? 0.f : m * scale;
      factor[r] = exp2_fast(high[r] * scale - shift);
      high[r] = m;
      float s = 0;
#pragma unroll
      for (int i = 0; i < Count / 4; ++i) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = scores[4 * i + 2 * r + e];
          x = exp2_fast(fmaf(x, scale, -shift));
          s += x;
        }
      }
      sum[r] = sum[r] * factor[r] + s;
    }
  }
  /// Ends the rows: inverse sums (0 where nothing was seen) and L; `scale` is that of natural exponents.
  __device__ void finish(float scale, float (&inverse)[2], float (&l)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float s = sum[r];
      s += __shfl_xor_sync(~0u, s, 1);
      s += __shfl_xor_sync(~0u, s, 2);
      inverse[r] = s > 0 ? 1 / s : 0.f;
      l[r] = s > 0 ? high[r] * scale + logf(s) : -INFINITY;
    }
  }
};

/// Writes an accumulator of 16 rows a warp, Columns wide, as T or float; `first` is this lane's first row
/// (the second is 8 further), rows at or past `limit` are left alone. Lanes of a row swap so as to write 16 bytes each.
template <class T, int Columns>
__device__ inline void store_rows(const float (&x)[Columns / 2], void* data,
                                  const std::int64_t (&stride)[3], int batch, int head, int first,
                                  int limit, int column, const float (&factor)[2], bool fp32) {
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first + 8 * r;
    if (fp32) {
      if (row < limit) {
        float* to = at<float>(data, stride, batch, row, head) + column + 2 * lane;
#pragma unroll
        for (int i = 0; i < Columns / 8; ++i) {
          *reinterpret_cast<float2*>(to + 8 * i) =
              make_float2(x[4 * i + 2 * r] * factor[r], x[4 * i + 2 * r + 1] * factor[r]);
        }
      }
      continue;
    }
#pragma unroll
    for (int i = 0; i < Columns / 32; ++i) {  // 4 x 4 transpose of words among four lanes
      std::uint32_t w[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        w[j] = pack<T>(x[4 * (4 * i + j) + 2 * r] * factor[r],
                       x[4 * (4 * i + j) + 2 * r + 1] * factor[r]);
      }
      const bool odd = lane & 1, high = lane & 2;
      std::uint32_t a = __shfl_xor_sync(~0u, odd ? w[0] : w[1], 1);
      std::uint32_t b = __shfl_xor_sync(~0u, odd ? w[2] : w[3], 1);
      if (odd)
        w[0] = a, w[2] = b;
      else
        w[1] = a, w[3] = b;
      a = __shfl_xor_sync(~0u, high ? w[0] : w[2], 2);
      b = __shfl_xor_sync(~0u, high ? w[1] : w[3], 2);
      if (high)
        w[0] = a, w[1] = b;
      else
        w[2] = a, w[3] = b;
      if (row < limit) {
        T* to = at<T>(data, stride, batch, row, head) + column + 32 * i + 8 * lane;
        *reinterpret_cast<uint4*>(to) = make_uint4(w[0], w[1], w[2], w[3]);
      }
    }
  }
}

void check(cudaError_t error, const char* what);

/// Lets Kernel have more than 48 KB of shared memory; asks CUDA once a device.
template <auto Kernel>
void allow_shared(int bytes, const char* what) {
  static std::atomic<std::uint64_t> done{0};  // a bit a device
  int device = 0;
  check(cudaGetDevice(&device), what);
  const std::uint64_t bit = std::uint64_t{1} << device % 64;
  if ((done.load(std::memory_order_relaxed) & bit) != 0) return;
  check(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), what);
  done |= bit;
}

// A kernel launched by launch_dependent() may start before the one ahead of it ends: sm_90.

/// Waits for the kernels ahead, and sees what they wrote.
__device__ inline void wait_for_predecessors() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Lets the next kernel start once every block has come here.
__device__ inline void release_successors() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Launches a kernel that calls wait_for_predecessors() first.
template <class... A>
void launch_dependent(void (*kernel)(A...), unsigned blocks, unsigned threads, std::size_t shared,
                      cudaStream_t queue, const char* what,
                      const std::type_identity_t<A>&... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.stream = queue;
  config.attrs = &early;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), what);
}

// One launch function per path and element type, each in its own file so that they compile in parallel.
template <class T>
void generic_forward(const forward_parameters& p, int head_dim, cudaStream_t queue);
template <class T>
void generic_backward(const backward_parameters& p, int head_dim, cudaStream_t queue);
template <class T>
void hopper_forward(const forward_parameters& p, int head_dim, cudaStream_t queue);
template <class T>
void hopper_backward(const backward_parameters& p, int head_dim, cudaStream_t queue);

/// Packs the row statistics as backward_parameters wants them and zeroes the dQ sum.
void backward_prologue(const backward_arguments& arguments, float* l, float* delta, float* d_q,
                       int padded_rows, cudaStream_t queue);
/// dQ of the asked type from the fp32 sum, in the layout of the path.
void backward_epilogue(const backward_arguments& arguments, const float* d_q, float scale,
                       int padded_rows, bool hopper_layout, cudaStream_t queue);

}  // namespace attnsim::kernels::cuda
