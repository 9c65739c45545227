// Backward on sm_80 and later: one thread block owns N columns of one K/V head, a warp 16 of them (Parts warps share
// 16 columns and split head_dim, for the accumulators to fit in registers), over tiles of M rows of every query head of
// the group. S^T and dP^T stay in registers as A operands of dV and dK; dS^T goes through shared memory for dQ, which
// is summed in fp32 by atomic additions, coalesced because the sum is stored in pieces of 16 rows by 32 of head_dim as
// [register][lane]; backward_epilogue() undoes it. FlashAttention-2 (arXiv 2307.08691), algorithm 2.
//
//   version  change                                              TFLOP/s on an H100, full / causal
//   1        64 x 64, 4 warps, dQ summed in rows                     134 / 129
//   2        dQ summed as the registers lie: coalesced atomics       208 / 206
// (bf16, 32 heads, head_dim 128, 8192 x 8192; all numbers: tests/gpu/README.md)
#pragma once

#include "kernels/cuda/mma.cuh"

namespace attnsim::kernels::cuda {

template <class T, int D, int M, int N, int Parts>
struct generic_backward_kernel {
  static constexpr int warps = N / 16 * Parts, threads = warps * 32, stride = D + 8,
                       ds_stride = M + 8;
  static constexpr int shared_bytes =
      ((2 * N + 2 * M) * stride + N * ds_stride) * sizeof(T) + 2 * M * sizeof(float);
};

template <class T, int D, int M, int N, int Parts>
__global__ void __launch_bounds__(N * 2 * Parts)
    generic_backward_run(const __grid_constant__ backward_parameters p) {
  using config = generic_backward_kernel<T, D, M, N, Parts>;
  constexpr int stride = config::stride, part_d = D / Parts;
  extern __shared__ __align__(128) unsigned char shared[];
  T* const k_tile = reinterpret_cast<T*>(shared);
  T* const v_tile = k_tile + N * stride;
  T* const q_tile = v_tile + N * stride;
  T* const do_tile = q_tile + M * stride;
  T* const ds_tile = do_tile + M * stride;
  float* const l_tile = reinterpret_cast<float*>(ds_tile + N * config::ds_stride);
  float* const delta_tile = l_tile + M;

  const int kv_head = blockIdx.y, batch = blockIdx.z, group = p.heads / p.kv_heads;
  const int first = blockIdx.x * N, last = min(first + N, p.cols) - 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int band = warp % (N / 16) * 16,
            d_first = warp / (N / 16) * part_d;  // this warp's columns and part of head_dim
  const float scale = p.scale * log2_e;

  load_tile<T, D, N, config::threads>(k_tile, at<T>(p.k, p.k_stride, batch, 0, kv_head),
                                      p.k_stride[1], first, p.cols);
  load_tile<T, D, N, config::threads>(v_tile, at<T>(p.v, p.v_stride, batch, 0, kv_head),
                                      p.v_stride[1], first, p.cols);
  copy_commit();

  int begin, end;
  p.mask.rows(first, last, p.rows, begin, end);
  begin = begin / M * M;

  float dk[part_d / 2] = {}, dv[part_d / 2] = {};
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const T* const q = at<T>(p.q, p.q_stride, batch, 0, head);
    const T* const d_o = at<T>(p.d_o, p.d_o_stride, batch, 0, head);
    const std::int64_t statistics =
        (static_cast<std::int64_t>(batch) * p.heads + head) * p.padded_rows;
    for (int i0 = begin; i0 < end; i0 += M) {
      __syncthreads();
      load_tile<T, D, M, config::threads>(q_tile, q, p.q_stride[1], i0, p.rows);
      load_tile<T, D, M, config::threads>(do_tile, d_o, p.d_o_stride[1], i0, p.rows);
      copy_commit();
      for (int i = threadIdx.x; i < M; i += config::threads) {
        l_tile[i] = p.l[statistics + i0 + i];
        delta_tile[i] = p.delta[statistics + i0 + i];
      }
      copy_wait<0>();
      __syncthreads();

      float s[M / 2] = {}, dp[M / 2] = {};  // S^T, dP^T: this warp's 16 columns by M rows
#pragma unroll
      for (int d = 0; d < D; d += 16) {
        std::uint32_t a[4], b[4];
        a_from_m_k(a, k_tile, stride, band, d);
#pragma unroll
        for (int i = 0; i < M; i += 16) {
          b_from_n_k(b, q_tile, stride, i, d);
          mma<T>(s + i / 2, a, b[0], b[1]);
          mma<T>(s + i / 2 + 4, a, b[2], b[3]);
        }
        a_from_m_k(a, v_tile, stride, band, d);
#pragma unroll
        for (int i = 0; i < M; i += 16) {
          b_from_n_k(b, do_tile, stride, i, d);
          mma<T>(dp + i / 2, a, b[0], b[1]);
          mma<T>(dp + i / 2 + 4, a, b[2], b[3]);
        }
      }
      const bool masked =
          first + N > p.cols || !p.mask.all_visible(i0, i0 + M - 1, first, first + N - 1);
#pragma unroll
      for (int e = 0; e < M / 2; ++e) {
        const int i = e / 4 * 8 + lane % 4 * 2 + e % 2,
                  column = first + band + lane / 4 + e % 4 / 2 * 8;
        s[e] = exp2_fast(fmaf(s[e], scale, -l_tile[i]));
        if (masked && (column >= p.cols || !p.mask.visible(i0 + i, column))) s[e] = 0;
        dp[e] = s[e] * (dp[e] - delta_tile[i]);
      }
      if (d_first == 0) {
#pragma unroll
        for (int i = 0; i < M; i += 8) {
          T* const to = ds_tile + (band + lane / 4) * config::ds_stride + i + lane % 4 * 2;
          *reinterpret_cast<std::uint32_t*>(to) = pack<T>(dp[i / 2], dp[i / 2 + 1]);
          *reinterpret_cast<std::uint32_t*>(to + 8 * config::ds_stride) =
              pack<T>(dp[i / 2 + 2], dp[i / 2 + 3]);
        }
      }
#pragma unroll
      for (int i = 0; i < M; i += 16) {
        std::uint32_t a[4], b[4];
        a_from_accumulator<T>(a, s + i / 2);
#pragma unroll
        for (int d = 0; d < part_d; d += 16) {
          b_from_k_n(b, do_tile, stride, d_first + d, i);
          mma<T>(dv + d / 2, a, b[0], b[1]);
          mma<T>(dv + d / 2 + 4, a, b[2], b[3]);
        }
        a_from_accumulator<T>(a, dp + i / 2);
#pragma unroll
        for (int d = 0; d < part_d; d += 16) {
          b_from_k_n(b, q_tile, stride, d_first + d, i);
          mma<T>(dk + d / 2, a, b[0], b[1]);
          mma<T>(dk + d / 2 + 4, a, b[2], b[3]);
        }
      }
      __syncthreads();
      // dQ = dS K, M x D: pieces of 16 rows by 32 of head_dim dealt out to the warps.
      for (int piece = warp; piece < M / 16 * (D / 32); piece += config::warps) {
        const int m = piece % (M / 16) * 16, d = piece / (M / 16) * 32;
        float dq[16] = {};
#pragma unroll
        for (int n = 0; n < N; n += 16) {
          std::uint32_t a[4], b[4];
          a_from_k_m(a, ds_tile, config::ds_stride, m, n);
#pragma unroll
          for (int e = 0; e < 32; e += 16) {
            b_from_k_n(b, k_tile, stride, d + e, n);
            mma<T>(dq + e / 2, a, b[0], b[1]);
            mma<T>(dq + e / 2 + 4, a, b[2], b[3]);
          }
        }
        float* const to =
            p.d_q + (statistics + i0 + m) * D + d * 16 + lane;  // pieces lie as the registers do
#pragma unroll
        for (int e = 0; e < 16; ++e) atomicAdd(to + e * 32, dq[e]);
      }
    }
  }
  copy_wait<0>();
  const float one[2] = {1, 1}, factor[2] = {p.scale, p.scale};
  const int column = first + band + lane / 4;
  store_rows<T, part_d>(dv, p.d_v, p.d_v_stride, batch, kv_head, column, p.cols, d_first, one,
                        p.fp32_gradient);
  store_rows<T, part_d>(dk, p.d_k, p.d_k_stride, batch, kv_head, column, p.cols, d_first, factor,
                        p.fp32_gradient);
}

template <class T, int D, int M, int N, int Parts>
void generic_backward_launch(const backward_parameters& p, cudaStream_t queue) {
  using config = generic_backward_kernel<T, D, M, N, Parts>;
  static_assert(row_padding % M == 0);
  allow_shared<generic_backward_run<T, D, M, N, Parts>>(config::shared_bytes,
                                                        "generic backward: shared memory");
  generic_backward_run<T, D, M, N, Parts><<<dim3((p.cols + N - 1) / N, p.kv_heads, p.batch),
                                            config::threads, config::shared_bytes, queue>>>(p);
  check(cudaGetLastError(), "generic backward");
}

template <class T>
void generic_backward(const backward_parameters& p, int head_dim, cudaStream_t queue) {
  switch (head_dim) {
    case 64:
      return generic_backward_launch<T, 64, 64, 64, 1>(p, queue);
    case 96:
      return generic_backward_launch<T, 96, 64, 64, 1>(p, queue);
    case 128:
      return generic_backward_launch<T, 128, 64, 64, 1>(p, queue);
    default:
      return generic_backward_launch<T, 256, 32, 32, 2>(p, queue);
  }
}

}  // namespace attnsim::kernels::cuda
