// The kernel of decode.hpp. A thread block has a share of the keys of a K/V head and one tile of its query rows, 16 a band; row r
// is query head r % group of token r / group. The warps of all blocks of a head take turns at Keys keys, each with stages of K and V,
// a softmax and an O of its own: in the loop no warp waits for another. At the end a block's are added up.
//
// What bounds it is the memory: with two blocks of four warps a multiprocessor, about 128 KB are on their way at a time.
#pragma once

#include "kernels/cuda/mma.cuh"

namespace attnsim::kernels::cuda {

/// One of the blocks that a call computes; a batch of sequences alike is one.
struct decode_request {
  const void *q, *k, *v;
  void* o;
  float* l;
  positions mask;
  int batch, rows, cols;
  int tiles;                  ///< of rows
  int splits;                 ///< of keys
  int blocks_before;          ///< thread blocks of the requests ahead
  int rows_before;            ///< rows of all heads of theirs
  std::int64_t found_before;  ///< rows that their splits find
};

struct decode_parameters {
  static constexpr int most = 32;  ///< requests; with 4 KB of parameters, what every driver takes

  forward_parameters block;  ///< what requests have in common: strides, heads, scale, type of O
  int group;                 ///< query heads of a K/V head
  int count;
  /// O of each split of a request [split][batch][row][head][value_dim], where it has several, and L [batch][row][head][split].
  float *found, *found_l;
  decode_request requests[most];

  /// The last request before which not more than `place` of what `before` counts lie.
  __device__ int request_at(int decode_request::*before, int place) const {
    int found_at = 0;
    for (int step = most / 2; step > 0; step /= 2) {
      if (found_at + step < count && requests[found_at + step].*before <= place) found_at += step;
    }
    return found_at;
  }
};
static_assert(sizeof(decode_parameters) <= 4096);

__host__ __device__ inline int rows_of(const decode_request& r, int heads) {
  return r.batch * r.rows * heads;
}

/// What a thread block has. Neighbours have the rows and heads of the same keys: what they read lies side by side.
struct decode_share {
  const decode_request& request;
  int tile, kv_head, batch, split;

  __device__ explicit decode_share(const decode_parameters& p)
      : request(p.requests[p.request_at(&decode_request::blocks_before, blockIdx.x)]) {
    int rest = blockIdx.x - request.blocks_before;
    tile = rest % request.tiles, rest /= request.tiles;
    kv_head = rest % p.block.kv_heads, rest /= p.block.kv_heads;
    batch = rest % request.batch, split = rest / request.batch;
  }
};

/// A query row of a K/V head, and where a thread block puts what it finds of it: with the results, or for combine().
struct decode_row {
  const decode_parameters& all;
  const decode_request& request;
  int batch, split, token, head;

  __device__ decode_row(const decode_parameters& p, const decode_share& mine, int row)
      : all(p),
        request(mine.request),
        batch(mine.batch),
        split(mine.split),
        token(row / p.group),
        head(mine.kv_head * p.group + row % p.group) {}

  __device__ bool last() const { return request.splits == 1; }
  __device__ std::int64_t place() const {
    return (std::int64_t{batch} * request.rows + token) * all.block.heads + head;
  }
  __device__ void store_l(float l) const {
    if (last())
      *at<float>(request.l, all.block.l_stride, batch, token, head) = l;
    else
      all.found_l[request.found_before + place() * request.splits + split] = l;
  }
  /// Whether O is written as the inputs' type, to half<T>(); else to single().
  __device__ bool in_half() const { return last() && !all.block.fp32_output; }
  template <class T>
  __device__ const T* query() const {
    return at<T>(request.q, all.block.q_stride, batch, token, head);
  }
  template <class T>
  __device__ T* half() const {
    return at<T>(request.o, all.block.o_stride, batch, token, head);
  }
  __device__ float* single(int value_dim) const {
    if (last()) return at<float>(request.o, all.block.o_stride, batch, token, head);
    const std::int64_t rows = rows_of(request, all.block.heads);
    return all.found + (request.found_before + split * rows + place()) * value_dim;
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
  static constexpr int stage = Keys * (D + ValueD);  // elements
  static constexpr int sum_stride = ValueD + 8;      // floats
  static constexpr int query_bytes = rows * D * 2;
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
                     shared_address(to + place(swizzled<D>{}, key, chunk * 8))),
                 "l"(source), "r"(valid ? 16 : 0));
  }
}

template <class T, int D, int ValueD, int Bands, int Keys>
__global__ void __launch_bounds__(128, 2)
    decode_run(const __grid_constant__ decode_parameters parameters) {
  using config = decode_kernel<T, D, ValueD, Bands, Keys>;
  const forward_parameters& p = parameters.block;
  extern __shared__ __align__(128) unsigned char shared[];
  T* const q_tile = reinterpret_cast<T*>(shared);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  T* const own =
      reinterpret_cast<T*>(shared + config::query_bytes) + warp * config::stages * config::stage;

  const decode_share mine(parameters);
  const decode_request& request = mine.request;
  const positions mask = request.mask;
  const int group = parameters.group;
  const int first = mine.tile * config::rows, limit = request.rows * group;
  const int first_token = first / group,
            last_token = (min(first + config::rows, limit) - 1) / group;
  const T* const k = at<T>(request.k, p.k_stride, mine.batch, 0, mine.kv_head);
  const T* const v = at<T>(request.v, p.v_stride, mine.batch, 0, mine.kv_head);

  int begin, end;
  mask.columns(first_token, last_token, request.cols, begin, end);
  const int step =
      request.splits * config::warps * Keys;  // of all blocks, which so read near each other

  const auto load = [&](int stage, int j) {
    if (j < end) {
      T* const to = own + stage * config::stage;
      load_keys<T, D, Keys>(to, k, p.k_stride[1], j, end);
      load_keys<T, ValueD, Keys>(to + Keys * D, v, p.v_stride[1], j, end);
    }
    copy_commit();
  };
  wait_for_predecessors();
  for (int i = threadIdx.x; i < config::rows * (D / 8); i += config::threads) {
    const int r = i / (D / 8), chunk = i % (D / 8);
    const bool valid = first + r < limit;
    const decode_row row(parameters, mine, valid ? first + r : first);
    copy_16(q_tile + place(swizzled<D>{}, r, chunk * 8), row.template query<T>() + chunk * 8,
            valid);
  }
  int j = begin + (mine.split * config::warps + warp) * Keys;
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
    const T* const v_tile = k_tile + Keys * D;
    stage = stage + 1 == config::stages ? 0 : stage + 1;

    float s[Bands][Keys / 2] = {};
#pragma unroll
    for (int d = 0; d < D; d += 16) {
      std::uint32_t a[Bands][4], b[4];
#pragma unroll
      for (int r = 0; r < Bands; ++r) a_from_m_k(a[r], q_tile, swizzled<D>{}, r * 16, d);
#pragma unroll
      for (int n = 0; n < Keys; n += 16) {
        b_from_n_k(b, k_tile, swizzled<D>{}, n, d);
#pragma unroll
        for (int r = 0; r < Bands; ++r) {
          mma<T>(s[r] + n / 2, a[r], b[0], b[1]);
          mma<T>(s[r] + n / 2 + 4, a[r], b[2], b[3]);
        }
      }
    }
    if (j + Keys > end || !mask.all_visible(first_token, last_token, j, j + Keys - 1)) {
#pragma unroll
      for (int r = 0; r < Bands; ++r) {
#pragma unroll
        for (int i = 0; i < Keys / 2; ++i) {
          const int column = j + i / 4 * 8 + lane % 4 * 2 + i % 2;
          if (column >= end || !mask.visible(token[r][i % 4 / 2], column)) s[r][i] = -INFINITY;
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
        swizzled<ValueD>{});
  }

  release_successors();
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
