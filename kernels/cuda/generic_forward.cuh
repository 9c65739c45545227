// Forward on sm_80 and later: one thread block computes M rows of one head, a warp 16 or 32 of them (Bands of 16, which
// share what it reads of K and V from shared memory), over tiles of N columns.
// FlashAttention-2 (arXiv 2307.08691), algorithm 1. K and V have one buffer each: V is fetched during S = Q K^T, the
// next K during O += P V. Blocks with the most columns start first.
//
//   version  change                                              TFLOP/s on an H100, full / causal
//   1        128 x 64, 8 warps of 16 rows                            225 / 179
//   2        4 warps of 32 rows: half the reads of shared memory     299 / 267
// (bf16, 32 heads, head_dim 128, 8192 x 8192; all numbers: tests/gpu/README.md)
#pragma once

#include "kernels/cuda/mma.cuh"

namespace attnsim::kernels::cuda {

template <class T, int D, int M, int N, int Bands>
struct generic_forward_kernel {
  static constexpr int warps = M / 16 / Bands, threads = warps * 32, stride = D + 8;
  static constexpr int shared_bytes = (M + 2 * N) * stride * sizeof(T);
};

template <class T, int D, int M, int N, int Bands>
__global__ void __launch_bounds__(M * 2 / Bands)
    generic_forward_run(const __grid_constant__ forward_parameters p) {
  using config = generic_forward_kernel<T, D, M, N, Bands>;
  extern __shared__ __align__(128) unsigned char shared[];
  T* const q_tile = reinterpret_cast<T*>(shared);
  T* const k_tile = q_tile + M * config::stride;
  T* const v_tile = k_tile + N * config::stride;

  const int head = blockIdx.y, batch = blockIdx.z, kv_head = head / (p.heads / p.kv_heads);
  const int first = (gridDim.x - 1 - blockIdx.x) * M, last = min(first + M, p.rows) - 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const T* const k = at<T>(p.k, p.k_stride, batch, 0, kv_head);
  const T* const v = at<T>(p.v, p.v_stride, batch, 0, kv_head);

  int begin, end;
  p.mask.columns(first, last, p.cols, begin, end);
  begin = begin / N * N;

  float o[Bands][D / 2] = {};
  online_softmax softmax[Bands];
  const float scale = p.scale * log2_e;
  const int row = first + warp * 16 * Bands + lane / 4;

  if (begin < end) {
    load_tile<T, D, M, config::threads>(q_tile, at<T>(p.q, p.q_stride, batch, 0, head),
                                        p.q_stride[1], first, p.rows);
    load_tile<T, D, N, config::threads>(k_tile, k, p.k_stride[1], begin, p.cols);
    copy_commit();
  }
  for (int j = begin; j < end; j += N) {
    copy_wait<0>();
    __syncthreads();
    load_tile<T, D, N, config::threads>(v_tile, v, p.v_stride[1], j, p.cols);
    copy_commit();

    float s[Bands][N / 2] = {};
#pragma unroll
    for (int d = 0; d < D; d += 16) {
      std::uint32_t a[Bands][4], b[4];
#pragma unroll
      for (int r = 0; r < Bands; ++r)
        a_from_m_k(a[r], q_tile, config::stride, (warp * Bands + r) * 16, d);
#pragma unroll
      for (int n = 0; n < N; n += 16) {
        b_from_n_k(b, k_tile, config::stride, n, d);
#pragma unroll
        for (int r = 0; r < Bands; ++r) {
          mma<T>(s[r] + n / 2, a[r], b[0], b[1]);
          mma<T>(s[r] + n / 2 + 4, a[r], b[2], b[3]);
        }
      }
    }
    if (j + N > p.cols || !p.mask.all_visible(first, last, j, j + N - 1)) {
#pragma unroll
      for (int r = 0; r < Bands; ++r) {
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
          const int column = j + i / 4 * 8 + lane % 4 * 2 + i % 2;
          if (column >= p.cols || !p.mask.visible(row + 16 * r + i % 4 / 2 * 8, column))
            s[r][i] = -INFINITY;
        }
      }
    }
#pragma unroll
    for (int r = 0; r < Bands; ++r) {
      float factor[2];
      softmax[r].step(s[r], scale, factor);
#pragma unroll
      for (int i = 0; i < D / 2; ++i) o[r][i] *= factor[i % 4 / 2];
    }

    copy_wait<0>();
    __syncthreads();
    if (j + N < end) load_tile<T, D, N, config::threads>(k_tile, k, p.k_stride[1], j + N, p.cols);
    copy_commit();
    add_values<T, Bands, N, D>(
        o, [&](auto& a, int r, int n) { a_from_accumulator<T>(a, s[r] + n / 2); }, v_tile,
        config::stride);
  }

#pragma unroll
  for (int r = 0; r < Bands; ++r) {
    float inverse[2], l[2];
    softmax[r].finish(p.scale, inverse, l);
    store_rows<T, D>(o[r], p.o, p.o_stride, batch, head, row + 16 * r, p.rows, 0, inverse,
                     p.fp32_output);
    if (lane % 4 != 0) continue;
    for (int e = 0; e < 2; ++e) {
      const int at_row = row + 16 * r + 8 * e;
      if (at_row < p.rows) *at<float>(p.l, p.l_stride, batch, at_row, head) = l[e];
    }
  }
}

template <class T, int D, int M, int N, int Bands>
void generic_forward_launch(const forward_parameters& p, cudaStream_t queue) {
  using config = generic_forward_kernel<T, D, M, N, Bands>;
  allow_shared<generic_forward_run<T, D, M, N, Bands>>(config::shared_bytes,
                                                       "generic forward: shared memory");
  generic_forward_run<T, D, M, N, Bands><<<dim3((p.rows + M - 1) / M, p.heads, p.batch),
                                           config::threads, config::shared_bytes, queue>>>(p);
  check(cudaGetLastError(), "generic forward");
}

template <class T>
void generic_forward(const forward_parameters& p, int head_dim, cudaStream_t queue) {
  switch (head_dim) {
    case 64:
      return generic_forward_launch<T, 64, 128, 64, 2>(p, queue);
    case 96:
      return generic_forward_launch<T, 96, 128, 64, 2>(p, queue);
    case 128:
      return generic_forward_launch<T, 128, 128, 64, 2>(p, queue);
    default:
      return generic_forward_launch<T, 256, 64, 32, 1>(p, queue);
  }
}

}  // namespace attnsim::kernels::cuda
