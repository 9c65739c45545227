// The kernel of decode.hpp. A thread block has a share of the keys of a K/V head and one tile of its query rows, 16 a band; row r
// is query head r % group of token r / group. The warps of all blocks of a head take turns at Keys keys, each with stages of K and V,
// a softmax and an O of its own: in the loop no warp waits for another. At the end a block's are added up.
//
// What bounds it is the memory: with two blocks of four warps a multiprocessor, about 128 KB are on their way at a time.
#pragma once

#include "kernels/cuda/mma.cuh"

namespace attnsim::kernels::cuda {

struct decode_parameters {
  forward_parameters block;
  int group;   ///< query heads of a K/V head
  int tiles;   ///< of rows
  int splits;  ///< of keys
  float*
      found;  ///< O of each split [split][batch][row][head][value_dim], if there are more than one
  float* found_l;
};

__host__ __device__ inline std::int64_t rows_of(const forward_parameters& p) {
  return std::int64_t{p.batch} * p.rows * p.heads;
}

/// What a thread block has. Neighbours have the rows and heads of the same keys: what they read lies side by side.
struct decode_share {
  int tile, kv_head, batch, split;

  __device__ explicit decode_share(const decode_parameters& p) {
    int rest = blockIdx.x;
    tile = rest % p.tiles, rest /= p.tiles;
    kv_head = rest % p.block.kv_heads, rest /= p.block.kv_heads;
    batch = rest % p.block.batch, split = rest / p.block.batch;
  }
};

/// A query row of a K/V head, and where a thread block puts what it finds of it: with the results, or for combine().
struct decode_row {
  const decode_parameters& all;
  int batch, split, token, head;

  __device__ decode_row(const decode_parameters& p, const decode_share& mine, int row)
      : all(p),
        batch(mine.batch),
        split(mine.split),
        token(row / p.group),
        head(mine.kv_head * p.group + row % p.group) {}

  __device__ bool last() const { return all.splits == 1; }
  __device__ std::int64_t place() const {
    return (std::int64_t{batch} * all.block.rows + token) * all.block.heads + head;
  }
  __device__ void store_l(float l) const {
    if (last())
      *at<float>(all.block.l, all.block.l_stride, batch, token, head) = l;
    else
      all.found_l[place() * all.splits + split] = l;
  }
  /// Whether O is written as the inputs' type, to half<T>(); else to single().
  __device__ bool in_half() const { return last() && !all.block.fp32_output; }
  template <class T>
  __device__ T* half() const {
    return at<T>(all.block.o, all.block.o_stride, batch, token, head);
  }
  __device__ float* single(int value_dim) const {
    return last() ? at<float>(all.block.o, all.block.o_stride, batch, token, head)
                  : all.found + (split * rows_of(all.block) + place()) * value_dim;
  }
};

/// A kernel and how it is launched.
struct decode_entry {
  void (*run)(decode_parameters) = nullptr;
  int rows = 0;  ///< of a tile
  int keys = 0;  ///< that all warps take in a step
  int threads = 0;
  int shared_bytes = 0;
};

template <class T, int D, int ValueD, int Bands, int Keys>
struct decode_kernel {
  static constexpr int warps = 4, threads = warps * 32, stages = 3, rows = 16 * Bands;
  static constexpr int key_stride = D + 8, value_stride = ValueD + 8;
  static constexpr int stage = Keys * (key_stride + value_stride);  // elements
  static constexpr int sum_stride = ValueD + 8;                     // floats
  static constexpr int query_bytes = rows * key_stride * 2;
  static constexpr int shared_bytes = query_bytes + warps * stages * stage * 2;
  static_assert(warps * rows * (sum_stride + 2) * 4 <= warps * stages * stage * 2);
};

/// Keys [first, first + Keys) of a head into a warp's stage, zeros from `limit` on.
template <class T, int D, int Keys>
__device__ inline void load_keys(T* to, const T* from, std::int64_t stride, int first, int limit) {
  constexpr int chunks = D / 8;
  static_assert(Keys * chunks % 32 == 0);
#pragma unroll
  for (int n = 0; n < Keys * chunks / 32; ++n) {
    const int i = n * 32 + threadIdx.x % 32, key = i / chunks, chunk = i % chunks;
    const bool valid = first + key < limit;
    const T* const source = from + (valid ? first + key : 0) * stride + chunk * 8;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                     shared_address(to + key * (D + 8) + chunk * 8)),
                 "l"(source), "r"(valid ? 16 : 0));
  }
}

template <class T, int D, int ValueD, int Bands, int Keys>
__global__ void __launch_bounds__(128)
    decode_run(const __grid_constant__ decode_parameters parameters) {
  using config = decode_kernel<T, D, ValueD, Bands, Keys>;
  const forward_parameters& p = parameters.block;
  extern __shared__ __align__(128) unsigned char shared[];
  T* const q_tile = reinterpret_cast<T*>(shared);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  T* const own =
      reinterpret_cast<T*>(shared + config::query_bytes) + warp * config::stages * config::stage;

  const decode_share mine(parameters);
  const int tile = mine.tile, kv_head = mine.kv_head, batch = mine.batch, split = mine.split;
  const int group = parameters.group;
  const int first = tile * config::rows, limit = p.rows * group;
  const int first_token = first / group,
            last_token = (min(first + config::rows, limit) - 1) / group;
  const T* const k = at<T>(p.k, p.k_stride, batch, 0, kv_head);
  const T* const v = at<T>(p.v, p.v_stride, batch, 0, kv_head);

  int begin, end;
  p.mask.columns(first_token, last_token, p.cols, begin, end);
  const int step =
      parameters.splits * config::warps * Keys;  // of all blocks, which so read near each other

  const auto load = [&](int stage, int j) {
    if (j < end) {
      T* const to = own + stage * config::stage;
      load_keys<T, D, Keys>(to, k, p.k_stride[1], j, end);
      load_keys<T, ValueD, Keys>(to + Keys * config::key_stride, v, p.v_stride[1], j, end);
    }
    copy_commit();
  };
  for (int i = threadIdx.x; i < config::rows * (D / 8); i += config::threads) {
    const int r = i / (D / 8), chunk = i % (D / 8);
    const bool valid = first + r < limit;
    const decode_row row(parameters, mine, valid ? first + r : first);
    copy_16(q_tile + r * config::key_stride + chunk * 8,
            at<T>(p.q, p.q_stride, batch, row.token, row.head) + chunk * 8, valid);
  }
  int j = begin + (split * config::warps + warp) * Keys;
#pragma unroll
  for (int s = 0; s < config::stages - 1; ++s) load(s, j + s * step);
  copy_wait<config::stages - 2>();
  __syncthreads();

  float o[Bands][ValueD / 2] = {};
  online_softmax softmax[Bands];
  const float scale = p.scale * log2_e;
  int token[Bands][2];
#pragma unroll
  for (int r = 0; r < Bands; ++r) {
    token[r][0] = (first + r * 16 + lane / 4) / group;
    token[r][1] = (first + r * 16 + lane / 4 + 8) / group;
  }

  for (int stage = 0; j < end; j += step) {
    copy_wait<config::stages - 2>();
    __syncwarp();
    load((stage + config::stages - 1) % config::stages, j + (config::stages - 1) * step);
    const T* const k_tile = own + stage * config::stage;
    const T* const v_tile = k_tile + Keys * config::key_stride;
    stage = stage + 1 == config::stages ? 0 : stage + 1;

    float s[Bands][Keys / 2] = {};
#pragma unroll
    for (int d = 0; d < D; d += 16) {
      std::uint32_t a[Bands][4], b[4];
#pragma unroll
      for (int r = 0; r < Bands; ++r) a_from_m_k(a[r], q_tile, config::key_stride, r * 16, d);
#pragma unroll
      for (int n = 0; n < Keys; n += 16) {
        b_from_n_k(b, k_tile, config::key_stride, n, d);
#pragma unroll
        for (int r = 0; r < Bands; ++r) {
          mma<T>(s[r] + n / 2, a[r], b[0], b[1]);
          mma<T>(s[r] + n / 2 + 4, a[r], b[2], b[3]);
        }
      }
    }
    if (j + Keys > end || !p.mask.all_visible(first_token, last_token, j, j + Keys - 1)) {
#pragma unroll
      for (int r = 0; r < Bands; ++r) {
#pragma unroll
        for (int i = 0; i < Keys / 2; ++i) {
          const int column = j + i / 4 * 8 + lane % 4 * 2 + i % 2;
          if (column >= end || !p.mask.visible(token[r][i % 4 / 2], column)) s[r][i] = -INFINITY;
        }
      }
    }
#pragma unroll
    for (int r = 0; r < Bands; ++r) {
      float factor[2];
      softmax[r].step(s[r], scale, factor);
      if (__any_sync(~0u, factor[0] != 1.f || factor[1] != 1.f)) {
#pragma unroll
        for (int i = 0; i < ValueD / 2; ++i) o[r][i] *= factor[i % 4 / 2];
      }
    }
    add_values<T, Bands, Keys, ValueD>(
        o, [&](auto& a, int r, int n) { a_from_accumulator<T>(a, s[r] + n / 2); }, v_tile,
        config::value_stride);
  }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  copy_wait<0>();
  __syncthreads();
  float* const sums = reinterpret_cast<float*>(shared + config::query_bytes);
  float* const highs = sums + config::warps * config::rows * config::sum_stride;
  float* const totals = highs + config::warps * config::rows;
#pragma unroll
  for (int r = 0; r < Bands; ++r) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int at_row = warp * config::rows + r * 16 + lane / 4 + 8 * e;
      float total = softmax[r].sum[e];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
      if (lane % 4 == 0) highs[at_row] = softmax[r].high[e], totals[at_row] = total;
#pragma unroll
      for (int i = 0; i < ValueD / 8; ++i) {
        *reinterpret_cast<float2*>(sums + at_row * config::sum_stride + 8 * i + lane % 4 * 2) =
            make_float2(o[r][4 * i + 2 * e], o[r][4 * i + 2 * e + 1]);
      }
    }
  }
  __syncthreads();

  for (int i = threadIdx.x; i < config::rows * (ValueD / 8); i += config::threads) {
    const int row = i / (ValueD / 8), d = i % (ValueD / 8) * 8;
    if (first + row >= limit) break;
    float high = -INFINITY, total = 0, x[8] = {};
#pragma unroll
    for (int w = 0; w < config::warps; ++w) high = fmaxf(high, highs[w * config::rows + row]);
#pragma unroll
    for (int w = 0; w < config::warps; ++w) {
      const int at_row = w * config::rows + row;
      const float factor =
          highs[at_row] == -INFINITY ? 0.f : exp2_fast((highs[at_row] - high) * scale);
      total += factor * totals[at_row];
#pragma unroll
      for (int e = 0; e < 8; ++e) x[e] += factor * sums[at_row * config::sum_stride + d + e];
    }
    const float inverse = total > 0 ? 1 / total : 0.f;
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] *= inverse;
    const decode_row result(parameters, mine, first + row);
    if (d == 0) result.store_l(total > 0 ? high * p.scale + logf(total) : -INFINITY);
    if (result.in_half()) {
      *reinterpret_cast<uint4*>(result.half<T>() + d) = make_uint4(
          pack<T>(x[0], x[1]), pack<T>(x[2], x[3]), pack<T>(x[4], x[5]), pack<T>(x[6], x[7]));
      continue;
    }
    float4* const to = reinterpret_cast<float4*>(result.single(ValueD) + d);
    to[0] = make_float4(x[0], x[1], x[2], x[3]);
    to[1] = make_float4(x[4], x[5], x[6], x[7]);
  }
}

template <class T, int D, int ValueD, int Bands, int Keys>
decode_entry decode_entry_of() {
  using config = decode_kernel<T, D, ValueD, Bands, Keys>;
  return {decode_run<T, D, ValueD, Bands, Keys>, config::rows, config::warps * Keys,
          config::threads, config::shared_bytes};
}

/// The kernel of tiles of 16 or 32 rows.
template <class T>
decode_entry decode_entry_for(int head_dim, bool few) {
  switch (head_dim) {
    case 64:
      return few ? decode_entry_of<T, 64, 64, 1, 32>() : decode_entry_of<T, 64, 64, 2, 32>();
    case 128:
      return few ? decode_entry_of<T, 128, 128, 1, 16>() : decode_entry_of<T, 128, 128, 2, 16>();
    default:
      return few ? decode_entry_of<T, 192, 128, 1, 16>() : decode_entry_of<T, 192, 128, 2, 16>();
  }
}

/// One translation unit a type, so that they compile in parallel.
decode_entry decode_bf16(int head_dim, bool few);
decode_entry decode_fp16(int head_dim, bool few);

/// Of absorbed latents: decode_latent.cu. `much_shared`: sm_90's shared memory.
decode_entry decode_latent(bool bf16, bool much_shared);

}  // namespace attnsim::kernels::cuda
