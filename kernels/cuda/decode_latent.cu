// The kernel of decode.hpp for absorbed latents (DeepSeek-V2, arXiv 2405.04434): keys of 576 elements, the first 512 of which are
// the values, so that what is read is read once. A thread block has 64 rows: for the scores its warps share 32 keys, four bands of
// rows by two halves of the keys; for O each has 64 of its columns.
#include "kernels/cuda/decode.cuh"

namespace attnsim::kernels::cuda {
namespace {

constexpr int key_dim = 576, value_dim = 512, rows = 64, keys = 32, warps = 8, threads = 32 * warps;
constexpr int key_stride = key_dim + 8, weight_stride = keys + 8, bands = rows / 16;
constexpr int columns = value_dim / warps;  ///< of O, a warp's

constexpr int shared_bytes(int stages) {
  return 2 * ((rows + stages * keys) * key_stride + rows * weight_stride) + 4 * 3 * rows;
}

template <class T>
__device__ inline void load_tile_of_keys(T* to, const T* from, std::int64_t stride, int first,
                                         int limit) {
  load_tile<T, key_dim, keys, threads>(to, from, stride, first, limit);
}

template <class T, int Stages>
__global__ void __launch_bounds__(threads)
    decode_latent_run(const __grid_constant__ decode_parameters parameters) {
  const forward_parameters& p = parameters.block;
  extern __shared__ __align__(128) unsigned char shared[];
  T* const q_tile = reinterpret_cast<T*>(shared);
  T* const k_tiles = q_tile + rows * key_stride;
  T* const weights = k_tiles + Stages * keys * key_stride;
  float* const highs = reinterpret_cast<float*>(weights + rows * weight_stride);  // of each half
  float* const factors = highs + 2 * rows;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const decode_share mine(parameters);
  const decode_request& request = mine.request;
  const positions mask = request.mask;
  const int group = parameters.group;
  const int first = mine.tile * rows, limit = request.rows * group;
  const int first_token = first / group, last_token = (min(first + rows, limit) - 1) / group;
  const T* const k = at<T>(request.k, p.k_stride, mine.batch, 0, mine.kv_head);

  int begin, end;
  mask.columns(first_token, last_token, request.cols, begin, end);
  begin += mine.split * keys;
  const int step = request.splits * keys;

  const auto load = [&](int stage, int j) {
    if (j < end) load_tile_of_keys(k_tiles + stage * keys * key_stride, k, p.k_stride[1], j, end);
    copy_commit();
  };
  wait_for_predecessors();
  for (int i = threadIdx.x; i < rows * (key_dim / 8); i += threads) {
    const int r = i / (key_dim / 8), chunk = i % (key_dim / 8);
    const bool valid = first + r < limit;
    const decode_row row(parameters, mine, valid ? first + r : first);
    copy_16(q_tile + r * key_stride + chunk * 8, row.template query<T>() + chunk * 8, valid);
  }
#pragma unroll
  for (int s = 0; s < Stages - 1; ++s) load(s, begin + s * step);

  const int band = warp % bands, half = warp / bands;
  const int own_rows[2] = {band * 16 + lane / 4, band * 16 + lane / 4 + 8};
  const float scale = p.scale * log2_e;
  float o[bands][columns / 2] = {}, high[2] = {-INFINITY, -INFINITY}, total[2] = {};
  int stage = 0;
  for (int j = begin; j < end; j += step) {
    copy_wait<Stages - 2>();
    __syncthreads();
    load((stage + Stages - 1) % Stages, j + (Stages - 1) * step);
    const T* const k_tile = k_tiles + stage * keys * key_stride;
    stage = stage + 1 == Stages ? 0 : stage + 1;

    float s[8] = {};
#pragma unroll 4
    for (int d = 0; d < key_dim; d += 16) {
      std::uint32_t a[4], b[4];
      a_from_m_k(a, q_tile, key_stride, band * 16, d);
      b_from_n_k(b, k_tile, key_stride, half * 16, d);
      mma<T>(s, a, b[0], b[1]);
      mma<T>(s + 4, a, b[2], b[3]);
    }
    if (j + keys > end || !mask.all_visible(first_token, last_token, j, j + keys - 1)) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int column = j + half * 16 + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (column >= end || !mask.visible((first + own_rows[i % 4 / 2]) / group, column))
          s[i] = -INFINITY;
      }
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float m = fmaxf(fmaxf(s[2 * e], s[2 * e + 1]), fmaxf(s[4 + 2 * e], s[5 + 2 * e]));
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
      if (lane % 4 == 0) highs[half * rows + own_rows[e]] = m;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int row = own_rows[e];
      const float m = fmaxf(high[e], fmaxf(highs[row], highs[rows + row]));
      const float shift = m == -INFINITY ? 0.f : m * scale;
      const float factor = exp2_fast(high[e] * scale - shift);
      high[e] = m;
      if (half == 0 && lane % 4 == 0) factors[row] = factor;
      total[e] *= factor;
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float x = exp2_fast(fmaf(s[4 * n + 2 * e], scale, -shift)),
                    y = exp2_fast(fmaf(s[4 * n + 2 * e + 1], scale, -shift));
        total[e] += x + y;
        *reinterpret_cast<std::uint32_t*>(weights + row * weight_stride + half * 16 + n * 8 +
                                          lane % 4 * 2) = pack<T>(x, y);
      }
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < bands; ++r) {
      const float factor[2] = {factors[r * 16 + lane / 4], factors[r * 16 + lane / 4 + 8]};
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) o[r][i] *= factor[i % 4 / 2];
    }
    add_values<T, bands, keys, columns>(
        o, [&](auto& a, int r, int n) { a_from_m_k(a, weights, weight_stride, r * 16, n); }, k_tile,
        key_stride, warp * columns);
  }

  release_successors();
  // The halves' sums and the rows' inverse, where their maxima were.
  copy_wait<0>();
  __syncthreads();
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    total[e] += __shfl_xor_sync(~0u, total[e], 1);
    total[e] += __shfl_xor_sync(~0u, total[e], 2);
    if (lane % 4 == 0) highs[half * rows + own_rows[e]] = total[e];
  }
  __syncthreads();
  if (half == 0 && lane % 4 == 0) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int row = own_rows[e];
      if (first + row >= limit) continue;
      const float sum = highs[row] + highs[rows + row];
      decode_row(parameters, mine, first + row)
          .store_l(sum > 0 ? high[e] * p.scale + logf(sum) : -INFINITY);
    }
  }
#pragma unroll
  for (int r = 0; r < bands; ++r) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int row = r * 16 + lane / 4 + 8 * e;
      if (first + row >= limit) continue;
      const float sum = highs[row] + highs[rows + row], inverse = sum > 0 ? 1 / sum : 0.f;
      const decode_row result(parameters, mine, first + row);
      const int column = warp * columns + lane % 4 * 2;
      if (result.in_half()) {
        T* const to = result.half<T>() + column;
#pragma unroll
        for (int i = 0; i < columns / 8; ++i)
          *reinterpret_cast<std::uint32_t*>(to + 8 * i) =
              pack<T>(o[r][4 * i + 2 * e] * inverse, o[r][4 * i + 2 * e + 1] * inverse);
        continue;
      }
      float* const to = result.single(value_dim) + column;
#pragma unroll
      for (int i = 0; i < columns / 8; ++i)
        *reinterpret_cast<float2*>(to + 8 * i) =
            make_float2(o[r][4 * i + 2 * e] * inverse, o[r][4 * i + 2 * e + 1] * inverse);
    }
  }
}

template <class T, int Stages>
decode_entry entry_of() {
  return {decode_latent_run<T, Stages>, rows, keys, threads, shared_bytes(Stages)};
}

}  // namespace

decode_entry decode_latent(bool bf16, bool much_shared) {
  if (much_shared) return bf16 ? entry_of<__nv_bfloat16, 3>() : entry_of<__half, 3>();
  return bf16 ? entry_of<__nv_bfloat16, 2>() : entry_of<__half, 2>();
}

}  // namespace attnsim::kernels::cuda
