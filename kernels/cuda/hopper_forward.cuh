// Forward on sm_90: persistent thread blocks of one producer warp and 2 or 3 (head_dim 64, many rows) consumer
// warpgroups of 64 rows each. The producer fetches Q, K and V tiles by TMA into a ring of buffers and the number of
// the next tile from a counter. A consumer keeps S, P and O in registers; it issues S of the next columns and
// O += P V together and does the softmax of the former while the latter runs; the warpgroups take turns at issuing,
// so that the tensor cores work for one while the other does its softmax. FlashAttention-3 (arXiv 2407.08608),
// algorithm 2 and section 3.
//
//   version  change                                              TFLOP/s on an H100, full / causal; 512 x 512 full
//   1        128 x 176 tiles (causal 128 x 128), heads in turn       688 / 619; 291
//   2        dependent launch; long tiles of a section of heads      685 / 598; 331
//            first, short ones of all heads last
//   3        128 x 128 tiles (128 x 160 beyond 8192 columns, full)   693 / 656; 354
// (bf16, 32 heads, head_dim 128, 8192 x 8192; clocks under load vary by 5 %; all numbers: tests/gpu/README.md)
#pragma once

#include "kernels/cuda/hopper.cuh"

namespace attnsim::kernels::cuda {

struct hopper_forward_parameters {
  CUtensorMap q, k, v;
  forward_parameters p;
  tile_order order;
  unsigned* counter;
};

template <class T, int D, int N, int Groups>
struct hopper_forward_shared {
  static constexpr int consumers = Groups, M = 64 * Groups, threads = 128 * (Groups + 1);
  static constexpr int stages = D == 128 ? 2 : 3;
  static constexpr int consumer_registers = consumers == 2 ? 240 : 160,
                       producer_registers = consumers == 2 ? 24 : 32;

  T q[D / 64][M][64];
  T k[stages][D / 64][N][64];
  T v[stages][D / 64][N][64];
  barrier q_full, q_empty, k_full[stages], k_empty[stages], v_full[stages], v_empty[stages],
      tile_full[2], tile_empty[2];
  int tile[2];
};

template <class T, int D, int N, int Groups>
__device__ inline void hopper_forward_produce(const hopper_forward_parameters& a,
                                              hopper_forward_shared<T, D, N, Groups>& s) {
  using config = hopper_forward_shared<T, D, N, Groups>;
  const forward_parameters& p = a.p;
  const int tiles = a.order.tiles * a.order.heads;
  ring<config::stages> k, v;
  ring<2> slot;
  int q_parity = 0;
  int index = blockIdx.x;
  prefetch_map(a.q), prefetch_map(a.k), prefetch_map(a.v);
  wait_for_predecessors();
  for (;;) {
    barrier_wait(&s.tile_empty[slot.index], slot.parity ^ 1);
    s.tile[slot.index] = index;
    barrier_arrive(&s.tile_full[slot.index]);
    slot.next();
    if (index >= tiles) break;
    const int next = gridDim.x + atomicAdd(a.counter, 1u);

    int tile, head;
    a.order.decode(index, tile, head);
    const int first = (a.order.tiles - 1 - tile) * config::M, batch = head / p.heads;
    head %= p.heads;
    const int kv_head = head / (p.heads / p.kv_heads);
    int begin, end;
    p.mask.columns(first, min(first + config::M, p.rows) - 1, p.cols, begin, end);
    begin = begin / N * N;

    const auto fetch = [&](auto& tiles_of, const CUtensorMap& map, barrier* full, barrier* empty,
                           auto& stage, int j) {
      barrier_wait(&empty[stage.index], stage.parity ^ 1);
      barrier_expect(&full[stage.index], sizeof(tiles_of[0]));
      for (int d = 0; d < D / 64; ++d)
        copy_tile(tiles_of[stage.index][d], map, &full[stage.index], 64 * d, j, kv_head, batch);
      stage.next();
    };
    if (begin < end) {
      const int j_last = begin + (end - 1 - begin) / N * N;
      barrier_wait(&s.q_empty, q_parity ^ 1);
      q_parity ^= 1;
      barrier_expect(&s.q_full, sizeof(s.q));
      for (int d = 0; d < D / 64; ++d)
        copy_tile(s.q[d], a.q, &s.q_full, 64 * d, first, head, batch);
      fetch(s.k, a.k, s.k_full, s.k_empty, k, j_last);
      for (int j = j_last; j > begin; j -= N) {
        fetch(s.k, a.k, s.k_full, s.k_empty, k, j - N);
        fetch(s.v, a.v, s.v_full, s.v_empty, v, j);
      }
      fetch(s.v, a.v, s.v_full, s.v_empty, v, begin);
    }
    index = next;
  }
  release_successors();
  __threadfence();
  if (atomicAdd(a.counter + 1, 1u) == gridDim.x - 1) a.counter[0] = 0, a.counter[1] = 0;
}

template <class T, int D, int N, int Groups>
__device__ inline void hopper_forward_consume(const hopper_forward_parameters& a,
                                              hopper_forward_shared<T, D, N, Groups>& s) {
  using config = hopper_forward_shared<T, D, N, Groups>;
  const forward_parameters& p = a.p;
  const int tiles = a.order.tiles * a.order.heads;
  const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const float scale = p.scale * log2_e;
  constexpr std::uint64_t stage_step = sizeof(s.k[0]) >> 4;
  const std::uint64_t q_matrix = matrix(s.q[0][group * 64]);
  const std::uint64_t k_matrix = matrix(s.k[0]), v_matrix = matrix(s.v[0], N * 128);
  ring<config::stages> k, v;
  ring<2> slot;
  int q_parity = 0;

  const auto release = [&](barrier* b) {
    __syncwarp();
    if (lane == 0) barrier_arrive(b);
  };
  float o[D / 2], scores[N / 2];
  std::uint32_t probabilities[N / 4];

  const auto issue_scores = [&] {
    pin(scores);
    wgmma_begin();
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
      wgmma<T, N>::template run<0, 0>(
          scores, q_matrix + d / 4 * (config::M * 128 >> 4) + d % 4 * k_major_step,
          k_matrix + k.index * stage_step + d / 4 * (N * 128 >> 4) + d % 4 * k_major_step, d > 0);
    }
    wgmma_commit();
  };
  const auto issue_output = [&] {
    pin(o);
    pin(probabilities);
    wgmma_begin();
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
      wgmma<T, D>::template run<1>(o, probabilities + 4 * n,
                                   v_matrix + v.index * stage_step + n * mn_major_step);
    }
    wgmma_commit();
  };
  const auto convert = [&] {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) probabilities[i] = pack<T>(scores[2 * i], scores[2 * i + 1]);
  };

  if (group == config::consumers - 1) named_arrive(1, 256);
  for (;;) {
    barrier_wait(&s.tile_full[slot.index], slot.parity);
    const int index = s.tile[slot.index];
    release(&s.tile_empty[slot.index]);
    slot.next();
    if (index >= tiles) break;

    int tile, head;
    a.order.decode(index, tile, head);
    const int first = (a.order.tiles - 1 - tile) * config::M, batch = head / p.heads;
    head %= p.heads;
    int begin, end;
    p.mask.columns(first, min(first + config::M, p.rows) - 1, p.cols, begin, end);
    begin = begin / N * N;
    const int row = first + group * 64 + warp * 16 + lane / 4;

    const auto mask = [&](int j) {
      if (j + N <= p.cols &&
          p.mask.all_visible(first + group * 64, first + group * 64 + 63, j, j + N - 1))
        return;
      int low[2], high[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) p.mask.columns(row + 8 * r, row + 8 * r, p.cols, low[r], high[r]);
#pragma unroll
      for (int i = 0; i < N / 2; ++i) {
        const int column = j + i / 4 * 8 + lane % 4 * 2 + i % 2, r = i % 4 / 2;
        if (column < low[r] || column >= high[r]) scores[i] = -INFINITY;
      }
    };
    online_softmax softmax;
    float factor[2];
#pragma unroll
    for (int i = 0; i < D / 2; ++i) o[i] = 0;

    if (begin < end) {
      int j = begin + (end - 1 - begin) / N * N;
      barrier_wait(&s.q_full, q_parity);
      q_parity ^= 1;
      barrier_wait(&s.k_full[k.index], k.parity);
      issue_scores();
      wgmma_wait<0>();
      pin(scores);
      release(&s.k_empty[k.index]);
      k.next();
      mask(j);
      softmax.step(scores, scale, factor);
      convert();
      for (j -= N; j >= begin; j -= N) {
        barrier_wait(&s.k_full[k.index], k.parity);
        named_sync(1 + group, 256);
        issue_scores();
        barrier_wait(&s.v_full[v.index], v.parity);
        issue_output();
        named_arrive(1 + (group + 1) % config::consumers, 256);
        wgmma_wait<1>();
        pin(scores);
        release(&s.k_empty[k.index]);
        k.next();
        mask(j);
        softmax.step(scores, scale, factor);
        wgmma_wait<0>();
        pin(o);
        release(&s.v_empty[v.index]);
        v.next();
#pragma unroll
        for (int i = 0; i < D / 2; ++i) o[i] *= factor[i % 4 / 2];
        convert();
      }
      release(&s.q_empty);
      barrier_wait(&s.v_full[v.index], v.parity);
      issue_output();
      wgmma_wait<0>();
      pin(o);
      release(&s.v_empty[v.index]);
      v.next();
    }
    float inverse[2], l[2];
    softmax.finish(p.scale, inverse, l);
    store_rows<T, D>(o, p.o, p.o_stride, batch, head, row, p.rows, 0, inverse, p.fp32_output);
    if (lane % 4 == 0) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (row + 8 * r < p.rows) *at<float>(p.l, p.l_stride, batch, row + 8 * r, head) = l[r];
      }
    }
  }
}

template <class T, int D, int N, int Groups>
__global__ void __launch_bounds__(hopper_forward_shared<T, D, N, Groups>::threads, 1)
    hopper_forward_run(const __grid_constant__ hopper_forward_parameters a) {
  using config = hopper_forward_shared<T, D, N, Groups>;
  extern __shared__ __align__(1024) unsigned char memory[];
  config& s = *reinterpret_cast<config*>(memory);
  if (threadIdx.x == 0) {
    constexpr int arrivals = config::consumers * 4;  // a warp each
    barrier_init(&s.q_full, 1);
    barrier_init(&s.q_empty, arrivals);
    for (int i = 0; i < config::stages; ++i) {
      barrier_init(&s.k_full[i], 1);
      barrier_init(&s.k_empty[i], arrivals);
      barrier_init(&s.v_full[i], 1);
      barrier_init(&s.v_empty[i], arrivals);
    }
    for (int i = 0; i < 2; ++i) {
      barrier_init(&s.tile_full[i], 1);
      barrier_init(&s.tile_empty[i], arrivals);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    give_registers<config::producer_registers>();
    if (threadIdx.x == 0) hopper_forward_produce<T, D, N, Groups>(a, s);
  } else {
    take_registers<config::consumer_registers>();
    hopper_forward_consume<T, D, N, Groups>(a, s);
  }
}

template <class T, int D, int N, int Groups>
void hopper_forward_launch(const forward_parameters& p, cudaStream_t queue) {
  using config = hopper_forward_shared<T, D, N, Groups>;
  constexpr bool bf16 = std::is_same_v<T, __nv_bfloat16>;
  hopper_forward_parameters a;
  a.q = tile_map(p.q, p.q_stride, p.batch, p.rows, p.heads, D, config::M, bf16);
  a.k = tile_map(p.k, p.k_stride, p.batch, p.cols, p.kv_heads, D, N, bf16);
  a.v = tile_map(p.v, p.v_stride, p.batch, p.cols, p.kv_heads, D, N, bf16);
  a.p = p;
  a.order = order_tiles((p.rows + config::M - 1) / config::M, p.heads * p.batch,
                        std::int64_t{p.cols} * D * 4 * p.kv_heads / p.heads, !p.mask.causal);
  a.counter = tile_counter();
  allow_shared<hopper_forward_run<T, D, N, Groups>>(sizeof(config),
                                                    "hopper forward: shared memory");
  const int blocks = std::min(a.order.tiles * a.order.heads, multiprocessors());
  launch_dependent(hopper_forward_run<T, D, N, Groups>, blocks, config::threads, sizeof(config),
                   queue, "hopper forward", a);
}

template <class T>
void hopper_forward(const forward_parameters& p, int head_dim, cudaStream_t queue) {
  if (head_dim == 64) {
    // Rows that the busiest multiprocessor computes: smaller tiles where they fill the device better.
    const auto rows = [&](std::int64_t m) {
      const std::int64_t tiles = (p.rows + m - 1) / m * p.heads * p.batch, n = multiprocessors();
      return (tiles + n - 1) / n * m;
    };
    return rows(128) * 10 < rows(192) * 9 ? hopper_forward_launch<T, 64, 128, 2>(p, queue)
                                          : hopper_forward_launch<T, 64, 128, 3>(p, queue);
  }
  // Longer tiles wait less often; shorter ones lose less at the start and end of a row of tiles.
  const bool long_rows = !p.mask.causal && p.cols > 8192;
  return long_rows ? hopper_forward_launch<T, 128, 160, 2>(p, queue)
                   : hopper_forward_launch<T, 128, 128, 2>(p, queue);
}

}  // namespace attnsim::kernels::cuda
