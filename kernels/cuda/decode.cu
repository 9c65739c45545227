// The host side of decode(): which kernel, how many splits; and the kernel that combines them.
#include "kernels/cuda/decode.hpp"

#include <limits>
#include <map>
#include <mutex>

#include "kernels/cuda/arguments.cuh"
#include "kernels/cuda/decode.cuh"
#include "kernels/cuda/hopper.cuh"

namespace attnsim::kernels::cuda {
namespace {

constexpr std::int64_t latent_dim = 576, latent_values = 512;

/// Thread blocks of a kernel at once on a multiprocessor; lets it have its shared memory.
int resident_blocks(const decode_entry& entry) {
  static std::mutex mutex;
  static std::map<std::pair<int, void (*)(decode_parameters)>, int> known;
  int device = 0;
  check(cudaGetDevice(&device), "decode");
  const std::lock_guard lock(mutex);
  int& blocks = known[{device, entry.run}];
  if (blocks > 0) return blocks;
  check(cudaFuncSetAttribute(entry.run, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             entry.shared_bytes),
        "decode: shared memory");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, entry.run, entry.threads,
                                                      entry.shared_bytes),
        "decode");
  return blocks;
}

struct decode_plan {
  decode_entry entry;
  int tiles = 1, splits = 1;
};

/// As many splits as take the fewest steps one behind the other, a block's beginning and end counted as `overhead` steps: of
/// those that fill one wave of blocks after the other.
int best_splits(std::int64_t blocks, std::int64_t steps, int slots) {
  constexpr std::int64_t overhead = 3, least = 2, most_waves = 4;
  const auto taken = [&](std::int64_t splits) {
    const auto waves = (blocks * splits + slots - 1) / slots;
    return waves * ((steps + splits - 1) / splits + overhead);
  };
  std::int64_t best = 1;
  for (std::int64_t wave = 1; wave <= most_waves; ++wave) {
    const auto splits = std::min(wave * slots / blocks, steps / least);
    if (splits > 1 && taken(splits) < taken(best)) best = splits;
  }
  return static_cast<int>(best);
}

decode_entry entry_for(element type, std::int64_t head_dim, bool few) {
  const bool bf16 = type == element::bf16;
  if (head_dim == latent_dim) return decode_latent(bf16, compute_capability() >= 9);
  return bf16 ? decode_bf16(static_cast<int>(head_dim), few)
              : decode_fp16(static_cast<int>(head_dim), few);
}

decode_plan plan_of(const forward_arguments& a, const forward_parameters& p) {
  const std::int64_t packed = std::int64_t{p.rows} * (p.heads / p.kv_heads);
  decode_plan plan{.entry = entry_for(a.type, a.shape.head_dim, packed <= 16)};
  plan.tiles = static_cast<int>((packed + plan.entry.rows - 1) / plan.entry.rows);
  int begin = 0, end = 0;
  p.mask.columns(0, p.rows - 1, p.cols, begin, end);
  const std::int64_t steps = (std::max(end - begin, 0) + plan.entry.keys - 1) / plan.entry.keys;
  plan.splits = best_splits(std::int64_t{p.batch} * p.kv_heads * plan.tiles, steps,
                            multiprocessors() * resident_blocks(plan.entry));
  return plan;
}

bool is_first_of(const tensor_view<const void>& part, const tensor_view<const void>& whole) {
  return part.data == whole.data && part.batch_stride == whole.batch_stride &&
         part.token_stride == whole.token_stride && part.head_stride == whole.head_stride;
}

/// A thread block a row: groups of ValueD / 4 threads take turns at the splits.
template <class T, int ValueD>
__global__ void combine_run(const __grid_constant__ decode_parameters parameters) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  constexpr int width = ValueD / 4, most_turns = 1024 / width;
  __shared__ float4 sums[most_turns][width];
  const forward_parameters& p = parameters.block;
  const std::int64_t row = blockIdx.x, rows = rows_of(p);
  const float* const ls = parameters.found_l + row * parameters.splits;
  const int lane = threadIdx.x % 32, turn = threadIdx.x / width, turns = blockDim.x / width;
  const int d = threadIdx.x % width;

  float high = -INFINITY, total = 0;
#pragma unroll 8
  for (int s = lane; s < parameters.splits; s += 32) high = fmaxf(high, ls[s]);
  for (int step = 16; step > 0; step /= 2) high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
  const float shift = high == -INFINITY ? 0.f : high;
#pragma unroll 8
  for (int s = lane; s < parameters.splits; s += 32) total += __expf(ls[s] - shift);
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  const float l = total > 0 ? high + logf(total) : -INFINITY;

  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
  for (int s = turn; s < parameters.splits; s += turns) {
    const float weight = total > 0 ? __expf(ls[s] - l) : 0.f;
    const float4 x =
        *reinterpret_cast<const float4*>(parameters.found + (s * rows + row) * ValueD + 4 * d);
    sum.x += weight * x.x, sum.y += weight * x.y, sum.z += weight * x.z, sum.w += weight * x.w;
  }
  sums[turn][d] = sum;
  __syncthreads();
  if (turn != 0) return;
  for (int other = 1; other < turns; ++other) {
    const float4 x = sums[other][d];
    sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
  }
  const int head = static_cast<int>(row % p.heads);
  const int token = static_cast<int>(row / p.heads % p.rows);
  const int batch = static_cast<int>(row / p.heads / p.rows);
  if (d == 0) *at<float>(p.l, p.l_stride, batch, token, head) = l;
  if (p.fp32_output) {
    *reinterpret_cast<float4*>(at<float>(p.o, p.o_stride, batch, token, head) + 4 * d) = sum;
  } else {
    *reinterpret_cast<uint2*>(at<T>(p.o, p.o_stride, batch, token, head) + 4 * d) =
        make_uint2(pack<T>(sum.x, sum.y), pack<T>(sum.z, sum.w));
  }
}

template <class T>
void combine(const decode_parameters& p, int value_dim, cudaStream_t queue) {
  const auto run = value_dim == 64    ? combine_run<T, 64>
                   : value_dim == 128 ? combine_run<T, 128>
                                      : combine_run<T, latent_values>;
  const int width = value_dim / 4;
  int turns = std::max(32 / width, 1);
  while (turns * width < 512 && turns * 2 <= p.splits) turns *= 2;
  const auto blocks = static_cast<unsigned>(rows_of(p.block)), threads = unsigned(turns * width);
  if (compute_capability() >= 9)
    return launch_dependent(run, blocks, threads, 0, queue, "combine", p);
  run<<<blocks, threads, 0, queue>>>(p);
  check(cudaGetLastError(), "combine");
}

}  // namespace

bool decode_available(const block_shape& s) {
  if (s.value_dim() == s.head_dim) return s.head_dim == 64 || s.head_dim == 128;
  return (s.head_dim == 192 && s.value_dim() == 128) ||
         (s.head_dim == latent_dim && s.value_dim() == latent_values);
}

bool prefers_decode(const block_shape& s) {
  constexpr std::int64_t tile = 128;
  constexpr double enough = 0.25;
  if (!decode_available(s)) return false;
  if (s.value_dim() != s.head_dim) return true;
  const double filled = std::min(1.0, static_cast<double>(s.batch * s.heads) / multiprocessors());
  return s.rows < tile && filled * static_cast<double>(s.rows) / tile < enough;
}

std::size_t decode_workspace(const forward_arguments& a) {
  const auto p = parameters_of(a);
  const int splits = p.rows == 0 || p.batch == 0 ? 1 : plan_of(a, p).splits;
  if (splits == 1) return 0;
  return static_cast<std::size_t>(splits * rows_of(p) * (a.shape.value_dim() + 1)) * sizeof(float);
}

void decode(const forward_arguments& a, void* workspace, stream queue) {
  const auto p = parameters_of(a);
  require(decode_available(a.shape), "no kernel of few rows for head_dim " +
                                         std::to_string(a.shape.head_dim) + " beside values of " +
                                         std::to_string(a.shape.value_dim()));
  require(a.shape.head_dim != latent_dim || is_first_of(a.v, a.k),
          "values of 512 elements a head beside keys of 576: expected to be their first");
  if (p.rows == 0 || p.batch == 0) return;
  const auto plan = plan_of(a, p);
  const decode_parameters all{
      .block = p,
      .group = p.heads / p.kv_heads,
      .tiles = plan.tiles,
      .splits = plan.splits,
      .found = static_cast<float*>(workspace),
      .found_l = static_cast<float*>(workspace) + plan.splits * rows_of(p) * a.shape.value_dim()};
  const auto blocks = std::int64_t{plan.tiles} * plan.splits * p.kv_heads * p.batch;
  require(blocks <= std::numeric_limits<int>::max(), "batch and heads: too many thread blocks");
  plan.entry
      .run<<<static_cast<unsigned>(blocks), plan.entry.threads, plan.entry.shared_bytes, queue>>>(
          all);
  check(cudaGetLastError(), "decode");
  if (plan.splits == 1) return;
  const auto value_dim = static_cast<int>(a.shape.value_dim());
  a.type == element::bf16 ? combine<__nv_bfloat16>(all, value_dim, queue)
                          : combine<__half>(all, value_dim, queue);
}

}  // namespace attnsim::kernels::cuda
