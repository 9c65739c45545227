// Keys and values of latents (kernels/cpu/expand.hpp): a product of bf16 or fp16, sums in fp32. A thread block makes 64 elements
// of a head of 64 tokens, 16 tokens a warp; what lies beside the latents is copied.
#include <string>

#include "kernels/cuda/arguments.cuh"
#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/mma.cuh"

namespace attnsim::kernels::cuda {
namespace {

constexpr int side = 64, expand_threads = 128, stride = side + 8;

struct expand_parameters {
  const void *latent, *expansion;
  void *key, *value;
  std::int64_t latent_stride[3], expansion_stride[3], key_stride[3], value_stride[3];
  int tokens, rank;
  int keys, made;  ///< elements of a head that become its key; that one has in all
};

template <class T>
__global__ void __launch_bounds__(expand_threads)
    expand_run(const __grid_constant__ expand_parameters p) {
  __shared__ __align__(128) T latents[side * stride], factors[side * stride];
  const int pieces = p.made / side, piece = blockIdx.y % pieces, head = blockIdx.y / pieces;
  const int first = blockIdx.x * side, batch = blockIdx.z, column = piece * side;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const T* const from = at<T>(p.latent, p.latent_stride, batch, 0, 0);
  const T* const by = at<T>(p.expansion, p.expansion_stride, 0, 0, head) + column;

  float sum[side / 2] = {};
  for (int r = 0; r < p.rank; r += side) {
    __syncthreads();
    load_tile<T, side, side, expand_threads>(latents, from + r, p.latent_stride[1], first,
                                             p.tokens);
    load_tile<T, side, side, expand_threads>(factors, by, p.made, r, p.rank);
    copy_commit();
    copy_wait<0>();
    __syncthreads();
#pragma unroll
    for (int k = 0; k < side; k += 16) {
      std::uint32_t a[4], b[4];
      a_from_m_k(a, latents, stride, warp * 16, k);
#pragma unroll
      for (int n = 0; n < side; n += 16) {
        b_from_k_n(b, factors, stride, n, k);
        mma<T>(sum + n / 2, a, b[0], b[1]);
        mma<T>(sum + n / 2 + 4, a, b[2], b[3]);
      }
    }
  }
  const float as_is[2] = {1, 1};
  const int row = first + warp * 16 + lane / 4;
  if (column < p.keys)
    store_rows<T, side>(sum, p.key, p.key_stride, batch, head, row, p.tokens, column, as_is, false);
  else
    store_rows<T, side>(sum, p.value, p.value_stride, batch, head, row, p.tokens, column - p.keys,
                        as_is, false);
}

template <class View>
void strides(std::int64_t (&to)[3], const View& view) {
  to[0] = view.batch_stride, to[1] = view.token_stride, to[2] = view.head_stride;
}

void require_whole(std::int64_t size, const char* what) {
  require(size % side == 0, std::string("latents: ") + what + " " + std::to_string(size) +
                                ": expected a multiple of 64");
}

}  // namespace

void expand(const expand_shape& s, const tensor& latent, const tensor& expansion, const tensor& key,
            const tensor& value, stream queue) {
  const auto keys = s.head_dim - s.rotary;
  require_whole(s.rank, "rank");
  require_whole(keys, "key elements made");
  require_whole(s.v_head_dim, "value elements");
  require(latent.type != element::fp32 && expansion.type == latent.type &&
              key.type == latent.type && value.type == latent.type,
          "latents: expected bf16 or fp16, and keys of the same type");
  expand_parameters p{.latent = latent.view.data,
                      .expansion = expansion.view.data,
                      .key = key.view.data,
                      .value = value.view.data,
                      .tokens = static_cast<int>(s.count),
                      .rank = static_cast<int>(s.rank),
                      .keys = static_cast<int>(keys),
                      .made = static_cast<int>(keys + s.v_head_dim)};
  strides(p.latent_stride, latent.view), strides(p.expansion_stride, expansion.view);
  strides(p.key_stride, key.view), strides(p.value_stride, value.view);
  const dim3 grid(static_cast<unsigned>((s.count + side - 1) / side),
                  static_cast<unsigned>(s.kv_heads * p.made / side),
                  static_cast<unsigned>(s.batch));
  const auto run = latent.type == element::bf16 ? expand_run<__nv_bfloat16> : expand_run<__half>;
  run<<<grid, expand_threads, 0, queue>>>(p);
  check(cudaGetLastError(), "expand");
  if (s.rotary == 0) return;
  const auto moved = [](tensor t, std::int64_t elements) {
    t.view.data =
        static_cast<char*>(t.view.data) + elements * static_cast<std::int64_t>(size_of(t.type));
    return t;
  };
  auto beside = moved(latent, s.rank);
  beside.view.head_stride = 0;
  copy({s.batch, s.count, s.kv_heads, s.rotary}, moved(key, keys), beside, queue);
}

}  // namespace attnsim::kernels::cuda
