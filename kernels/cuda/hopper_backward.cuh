// Backward on sm_90: a thread block of one producer warp and two consumer warpgroups owns 128 columns of one K/V
// head, 64 a warpgroup, over tiles of M rows (64 for head_dim 128, 128 for 64) of every query head of the group. The
// producer fetches Q and dO by TMA into a ring of buffers. A consumer computes S^T = K Q^T and dP^T = V dO^T into
// registers, uses P^T and dS^T from there as A operands of dV and dK, and hands dS^T through shared memory to both
// warpgroups for dQ = dS K, of which each does one half (of head_dim for 128, of the rows for 64) and adds it to an
// fp32 sum in global memory with vector reductions. That sum is stored in pieces of 64 rows by 64 of head_dim as the
// accumulator lies in registers, [d / 8][thread][4], so that every reduction is coalesced; backward_epilogue() undoes
// it. FlashAttention-3 (arXiv 2407.08608), section B.1.
//
//   version  change                                              TFLOP/s on an H100, full / causal; 512 x 512 full
//   1        L and delta by bulk copies, five launches               556 / 525 (cooler card); 203
//   2        delta and the zeros of dQ in one prologue, dependent    553 / 485; 240
//            launches, order of tiles as in forward
//   3        L and delta by plain loads an iteration ahead: they     512 / 447; 227
//            queue behind the reductions of dQ
//   4        two iterations ahead, before the reductions             553 / 499; 241
// (bf16, 32 heads, head_dim 128, 8192 x 8192; clocks under load vary by 5 %; all numbers: tests/gpu/README.md)
#pragma once

#include "kernels/cuda/hopper.cuh"

namespace attnsim::kernels::cuda {

struct hopper_backward_parameters {
  CUtensorMap q, k, v, d_o;
  backward_parameters p;
  tile_order order;
};

template <class T, int D>
struct hopper_backward_shared {
  static constexpr int M = D == 128 ? 64 : 128, N = 128, threads = 384, stages = 2;

  T k[D / 64][N][64];
  T v[D / 64][N][64];
  T q[stages][D / 64][M][64];
  T d_o[stages][D / 64][M][64];
  T ds[2][M / 64][N][64];      // dS^T; double, so that one barrier an iteration is enough
  float statistics[2][2 * M];  // L and delta of the rows at hand and of the next
  barrier kv_full, q_full[stages], q_empty[stages], do_full[stages], do_empty[stages];
};

struct backward_tile {
  int first, kv_head, batch, begin, end;
};

template <class T, int D>
__device__ inline backward_tile backward_tile_of(const hopper_backward_parameters& a) {
  using config = hopper_backward_shared<T, D>;
  backward_tile t;
  int tile, head;
  a.order.decode(blockIdx.x, tile, head);
  t.first = tile * config::N;
  t.batch = head / a.p.kv_heads;
  t.kv_head = head % a.p.kv_heads;
  a.p.mask.rows(t.first, min(t.first + config::N, a.p.cols) - 1, a.p.rows, t.begin, t.end);
  t.begin = t.begin / config::M * config::M;
  return t;
}

template <class T, int D>
__device__ inline void hopper_backward_produce(const hopper_backward_parameters& a,
                                               hopper_backward_shared<T, D>& s) {
  using config = hopper_backward_shared<T, D>;
  const backward_parameters& p = a.p;
  const backward_tile t = backward_tile_of<T, D>(a);
  const int group = p.heads / p.kv_heads;
  prefetch_map(a.k), prefetch_map(a.v), prefetch_map(a.q), prefetch_map(a.d_o);
  barrier_expect(&s.kv_full, sizeof(s.k) + sizeof(s.v));
  for (int d = 0; d < D / 64; ++d)
    copy_tile(s.k[d], a.k, &s.kv_full, 64 * d, t.first, t.kv_head, t.batch);
  for (int d = 0; d < D / 64; ++d)
    copy_tile(s.v[d], a.v, &s.kv_full, 64 * d, t.first, t.kv_head, t.batch);
  ring<config::stages> stage;
  for (int head = t.kv_head * group; head < (t.kv_head + 1) * group; ++head) {
    for (int i = t.begin; i < t.end; i += config::M) {
      const int x = stage.index;
      barrier_wait(&s.q_empty[x], stage.parity ^ 1);
      barrier_expect(&s.q_full[x], sizeof(s.q[0]));
      for (int d = 0; d < D / 64; ++d)
        copy_tile(s.q[x][d], a.q, &s.q_full[x], 64 * d, i, head, t.batch);
      barrier_wait(&s.do_empty[x], stage.parity ^ 1);
      barrier_expect(&s.do_full[x], sizeof(s.d_o[0]));
      for (int d = 0; d < D / 64; ++d)
        copy_tile(s.d_o[x][d], a.d_o, &s.do_full[x], 64 * d, i, head, t.batch);
      stage.next();
    }
  }
}

template <class T, int D>
__device__ inline void hopper_backward_consume(const hopper_backward_parameters& a,
                                               hopper_backward_shared<T, D>& s) {
  using config = hopper_backward_shared<T, D>;
  constexpr int M = config::M, N = config::N;
  const backward_parameters& p = a.p;
  const backward_tile t = backward_tile_of<T, D>(a);
  const int heads_a_group = p.heads / p.kv_heads;
  const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const float scale = p.scale * log2_e;

  constexpr std::uint64_t stage_step = sizeof(s.q[0]) >> 4, ds_step = sizeof(s.ds[0]) >> 4;
  constexpr std::uint64_t kv_atom = N * 128 >> 4, q_atom = M * 128 >> 4;
  const std::uint64_t k_rows = matrix(s.k[0][group * 64]),
                      v_rows = matrix(s.v[0][group * 64]);                  // A of S^T, dP^T
  const std::uint64_t q_rows = matrix(s.q[0]), do_rows = matrix(s.d_o[0]);  // B of S^T, dP^T
  const std::uint64_t q_turned = matrix(s.q[0], M * 128),
                      do_turned = matrix(s.d_o[0], M * 128);  // B of dK, dV
  const std::uint64_t ds_turned =
      matrix(D == 128 ? s.ds[0][0] : s.ds[0][group % (M / 64)]);                     // A of dQ
  const std::uint64_t k_turned = matrix(D == 128 ? s.k[group % (D / 64)] : s.k[0]);  // B of dQ

  // Where this lane's stmatrix row lies: row lane % 16 of the warp's 16, 16-byte chunk 2 * step + lane / 16 swizzled.
  const int ds_row = group * 64 + warp * 16 + lane % 16;
  const std::uint32_t ds_address = shared_at(s.ds[0][0][ds_row]);

  const auto release = [&](barrier* b) {
    __syncwarp();
    if (lane == 0) barrier_arrive(b);
  };
  const int column = t.first + group * 64 + warp * 16 + lane / 4;
  float dk[D / 2] = {}, dv[D / 2] = {};
  ring<config::stages> stage;
  int buffer = 0;
  // L and delta are loaded two iterations ahead, a value a thread (one ahead, they would queue behind the reductions
  // of dQ), and handed over by the barrier that hands over dS. The prologue ahead in the stream wrote them, and the
  // zeros of dQ; Q, K, V and dO are older.
  const int value = threadIdx.x - 128;
  const bool carries = value < 2 * M;
  const float* const statistics = (value / M == 0 ? p.l : p.delta) +
                                  std::int64_t{t.batch} * p.heads * p.padded_rows + value % M;
  const int head_end = (t.kv_head + 1) * heads_a_group;
  int next_head = t.kv_head * heads_a_group, next_row = t.begin;
  const auto load_next = [&] {  // the value of the rows the cursor is at; moves it
    const float x = carries && next_head < head_end
                        ? statistics[next_head * std::int64_t{p.padded_rows} + next_row]
                        : 0;
    next_row += M;
    if (next_row >= t.end) next_row = t.begin, ++next_head;
    return x;
  };
  wait_for_predecessors();
  float carried = 0;
  if (t.begin < t.end) {
    carried = load_next();
    if (carries) s.statistics[0][value] = carried;
    carried = load_next();
  }
  named_sync(1, 256);
  barrier_wait(&s.kv_full, 0);
  for (int head = t.kv_head * heads_a_group; head < (t.kv_head + 1) * heads_a_group; ++head) {
    float* d_q =
        p.d_q +
        ((static_cast<std::int64_t>(t.batch) * p.heads + head) * p.padded_rows + t.begin) * D +
        group * 4096 + threadIdx.x % 128 * 4;
    for (int i0 = t.begin; i0 < t.end; i0 += M, d_q += M * D) {
      const int x = stage.index;
      float scores[M / 2], dp[M / 2];
      barrier_wait(&s.q_full[x], stage.parity);
      pin(scores);
      wgmma_begin();
#pragma unroll
      for (int d = 0; d < D / 16; ++d) {
        wgmma<T, M>::template run<0, 0>(
            scores, k_rows + d / 4 * kv_atom + d % 4 * k_major_step,
            q_rows + x * stage_step + d / 4 * q_atom + d % 4 * k_major_step, d > 0);
      }
      wgmma_commit();
      barrier_wait(&s.do_full[x], stage.parity);
      pin(dp);
      wgmma_begin();
#pragma unroll
      for (int d = 0; d < D / 16; ++d) {
        wgmma<T, M>::template run<0, 0>(
            dp, v_rows + d / 4 * kv_atom + d % 4 * k_major_step,
            do_rows + x * stage_step + d / 4 * q_atom + d % 4 * k_major_step, d > 0);
      }
      wgmma_commit();
      wgmma_wait<1>();
      pin(scores);
#pragma unroll
      for (int i = 0; i < M / 2; i += 4) {
        const float2 l =
            *reinterpret_cast<const float2*>(&s.statistics[buffer][i * 2 + lane % 4 * 2]);
        scores[i] = exp2_fast(fmaf(scores[i], scale, -l.x));
        scores[i + 1] = exp2_fast(fmaf(scores[i + 1], scale, -l.y));
        scores[i + 2] = exp2_fast(fmaf(scores[i + 2], scale, -l.x));
        scores[i + 3] = exp2_fast(fmaf(scores[i + 3], scale, -l.y));
      }
      if (t.first + N > p.cols || !p.mask.all_visible(i0, i0 + M - 1, t.first, t.first + N - 1)) {
        int low[2], high[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          p.mask.rows(column + 8 * r, column + 8 * r, p.rows, low[r], high[r]);
          if (column + 8 * r >= p.cols) high[r] = 0;
        }
#pragma unroll
        for (int i = 0; i < M / 2; ++i) {
          const int row = i0 + i / 4 * 8 + lane % 4 * 2 + i % 2, r = i % 4 / 2;
          if (row < low[r] || row >= high[r]) scores[i] = 0;
        }
      }
      std::uint32_t probabilities[M / 4], ds[M / 4];
#pragma unroll
      for (int i = 0; i < M / 4; ++i) probabilities[i] = pack<T>(scores[2 * i], scores[2 * i + 1]);
      wgmma_wait<0>();
      pin(dp);
#pragma unroll
      for (int i = 0; i < M / 2; i += 4) {
        const float2 delta =
            *reinterpret_cast<const float2*>(&s.statistics[buffer][M + i * 2 + lane % 4 * 2]);
        dp[i] = scores[i] * (dp[i] - delta.x);
        dp[i + 1] = scores[i + 1] * (dp[i + 1] - delta.y);
        dp[i + 2] = scores[i + 2] * (dp[i + 2] - delta.x);
        dp[i + 3] = scores[i + 3] * (dp[i + 3] - delta.y);
        ds[i / 2] = pack<T>(dp[i], dp[i + 1]);
        ds[i / 2 + 1] = pack<T>(dp[i + 2], dp[i + 3]);
      }
#pragma unroll
      for (int i = 0; i < M / 16; ++i) {
        const int chunk = i % 4 * 2 + lane / 16;
        const std::uint32_t to = ds_address + buffer * static_cast<std::uint32_t>(sizeof(s.ds[0])) +
                                 i / 4 * static_cast<std::uint32_t>(sizeof(s.ds[0][0])) +
                                 (chunk ^ lane % 8) * 16;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                     "r"(ds[4 * i]), "r"(ds[4 * i + 1]), "r"(ds[4 * i + 2]), "r"(ds[4 * i + 3])
                     : "memory");
      }
      pin(dv);
      pin(probabilities);
      wgmma_begin();
#pragma unroll
      for (int i = 0; i < M / 16; ++i) {
        wgmma<T, D>::template run<1>(dv, probabilities + 4 * i,
                                     do_turned + x * stage_step + i * mn_major_step);
      }
      wgmma_commit();
      if (carries) s.statistics[buffer ^ 1][value] = carried;
      fence_async_proxy();
      named_sync(1, 256);
      carried = load_next();
      float dq[32];
      pin(dq);
      wgmma_begin();
#pragma unroll
      for (int n = 0; n < N / 16; ++n) {
        wgmma<T, 64>::template run<1, 1>(dq, ds_turned + buffer * ds_step + n * mn_major_step,
                                         k_turned + n * mn_major_step, n > 0);
      }
      wgmma_commit();
      pin(dk);
      pin(ds);
      wgmma_begin();
#pragma unroll
      for (int i = 0; i < M / 16; ++i) {
        wgmma<T, D>::template run<1>(dk, ds + 4 * i, q_turned + x * stage_step + i * mn_major_step);
      }
      wgmma_commit();
      wgmma_wait<1>();
      pin(dv);
      pin(dq);
      release(&s.do_empty[x]);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        add_to_global(d_q + i * 512, dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]);
      wgmma_wait<0>();
      pin(dk);
      release(&s.q_empty[x]);
      stage.next();
      buffer ^= 1;
    }
  }
  release_successors();
  const float one[2] = {1, 1}, factor[2] = {p.scale, p.scale};
  store_rows<T, D>(dv, p.d_v, p.d_v_stride, t.batch, t.kv_head, column, p.cols, 0, one,
                   p.fp32_gradient);
  store_rows<T, D>(dk, p.d_k, p.d_k_stride, t.batch, t.kv_head, column, p.cols, 0, factor,
                   p.fp32_gradient);
}

template <class T, int D>
__global__ void __launch_bounds__(384, 1)
    hopper_backward_run(const __grid_constant__ hopper_backward_parameters a) {
  using config = hopper_backward_shared<T, D>;
  extern __shared__ __align__(1024) unsigned char memory[];
  config& s = *reinterpret_cast<config*>(memory);
  if (threadIdx.x == 0) {
    barrier_init(&s.kv_full, 1);
    for (int i = 0; i < config::stages; ++i) {
      barrier_init(&s.q_full[i], 1);
      barrier_init(&s.q_empty[i], 8);
      barrier_init(&s.do_full[i], 1);
      barrier_init(&s.do_empty[i], 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    give_registers<24>();
    if (threadIdx.x == 0) hopper_backward_produce<T, D>(a, s);
  } else {
    take_registers<240>();
    hopper_backward_consume<T, D>(a, s);
  }
}

template <class T, int D>
void hopper_backward_launch(const backward_parameters& p, cudaStream_t queue) {
  using config = hopper_backward_shared<T, D>;
  constexpr bool bf16 = std::is_same_v<T, __nv_bfloat16>;
  static_assert(row_padding % config::M == 0);
  hopper_backward_parameters a;
  a.q = tile_map(p.q, p.q_stride, p.batch, p.rows, p.heads, D, config::M, bf16);
  a.k = tile_map(p.k, p.k_stride, p.batch, p.cols, p.kv_heads, D, config::N, bf16);
  a.v = tile_map(p.v, p.v_stride, p.batch, p.cols, p.kv_heads, D, config::N, bf16);
  a.d_o = tile_map(p.d_o, p.d_o_stride, p.batch, p.rows, p.heads, D, config::M, bf16);
  a.p = p;
  a.order = order_tiles((p.cols + config::N - 1) / config::N, p.kv_heads * p.batch,
                        std::int64_t{p.rows} * D * 8 * (p.heads / p.kv_heads), !p.mask.causal);
  allow_shared<hopper_backward_run<T, D>>(sizeof(config), "hopper backward: shared memory");
  launch_dependent(hopper_backward_run<T, D>, a.order.tiles * a.order.heads, config::threads,
                   sizeof(config), queue, "hopper backward", a);
}

template <class T>
void hopper_backward(const backward_parameters& p, int head_dim, cudaStream_t queue) {
  if (head_dim == 64) return hopper_backward_launch<T, 64>(p, queue);
  return hopper_backward_launch<T, 128>(p, queue);
}

}  // namespace attnsim::kernels::cuda
