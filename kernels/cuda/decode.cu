// The host side of decode(): which kernel, how many splits; and the kernel that combines them.
#include "kernels/cuda/decode.hpp"

#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

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

/// What is split: `blocks` thread blocks that have so many steps each.
struct decode_work {
  std::int64_t blocks, steps;
};

std::int64_t splits_of(std::int64_t steps, std::int64_t share) {
  return std::max<std::int64_t>((steps + share - 1) / share, 1);
}

/// The least share of steps by which all work is no more than `most` thread blocks.
std::int64_t least_share(const std::vector<decode_work>& all, std::int64_t most) {
  const auto fits = [&](std::int64_t share) {
    std::int64_t blocks = 0;
    for (const auto& work : all) blocks += work.blocks * splits_of(work.steps, share);
    return blocks <= most;
  };
  constexpr std::int64_t least = 2;
  std::int64_t low = least, high = least;
  for (const auto& work : all) high = std::max(high, work.steps);
  while (low < high) {
    const auto middle = (low + high) / 2;
    if (fits(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

/// Steps of a thread block: those that take the fewest one behind the other, a block's beginning and end counted as `overhead`
/// steps, of those that fill one wave of blocks after the other.
std::int64_t best_share(const std::vector<decode_work>& all, int slots) {
  constexpr std::int64_t overhead = 3, most_waves = 4;
  std::int64_t best = 0, least = std::numeric_limits<std::int64_t>::max(), unsplit = 0;
  for (const auto& work : all) unsplit += work.blocks;
  const auto first = std::max<std::int64_t>((unsplit + slots - 1) / slots, 1);
  for (auto waves = first; waves < first + most_waves; ++waves) {
    const auto share = least_share(all, waves * slots);
    const auto taken = waves * (share + overhead);
    if (taken < least) best = share, least = taken;
  }
  return best;
}

decode_entry entry_for(element type, std::int64_t head_dim, bool few) {
  const bool bf16 = type == element::bf16;
  if (head_dim == latent_dim) return decode_latent(bf16, compute_capability() >= 9);
  return bf16 ? decode_bf16(static_cast<int>(head_dim), few)
              : decode_fp16(static_cast<int>(head_dim), few);
}

/// A launch: as many blocks as its parameters have room for.
struct decode_plan {
  decode_entry entry;
  decode_parameters parameters;
  std::int64_t blocks = 0, rows = 0, found = 0;  ///< of all requests
  bool splits = false;
};

decode_plan plan_of(std::span<const forward_arguments> all) {
  std::vector<forward_parameters> blocks;
  int rows = 0;
  for (const auto& a : all) {
    const auto own = parameters_of(a);
    if (own.rows > 0 && own.batch > 0) blocks.push_back(own);
    rows = std::max(rows, own.rows);
  }
  decode_plan plan{};
  if (blocks.empty()) return plan;
  auto& p = plan.parameters;
  p.block = blocks.front();
  p.group = p.block.heads / p.block.kv_heads;
  plan.entry = entry_for(all.front().type, all.front().shape.head_dim, rows * p.group <= 16);

  std::vector<decode_work> work;
  for (const auto& own : blocks) {
    auto& r = p.requests[p.count++];
    r = {.q = own.q, .k = own.k, .v = own.v, .o = own.o, .l = own.l, .mask = own.mask};
    r.batch = own.batch, r.rows = own.rows, r.cols = own.cols;
    r.tiles = (own.rows * p.group + plan.entry.rows - 1) / plan.entry.rows;
    int begin = 0, end = 0;
    own.mask.columns(0, own.rows - 1, own.cols, begin, end);
    work.push_back({.blocks = std::int64_t{r.batch} * own.kv_heads * r.tiles,
                    .steps = (std::max(end - begin, 0) + plan.entry.keys - 1) / plan.entry.keys});
  }
  const auto share = best_share(work, multiprocessors() * resident_blocks(plan.entry));
  for (int i = 0; i < p.count; ++i) {
    auto& r = p.requests[i];
    r.splits = static_cast<int>(splits_of(work[static_cast<std::size_t>(i)].steps, share));
    r.blocks_before = static_cast<int>(plan.blocks), r.rows_before = static_cast<int>(plan.rows);
    r.found_before = plan.found;
    const auto rows = std::int64_t{r.batch} * r.rows * p.block.heads;
    plan.blocks += work[static_cast<std::size_t>(i)].blocks * r.splits, plan.rows += rows;
    if (r.splits > 1) plan.found += rows * r.splits, plan.splits = true;
    require(std::max(plan.blocks, plan.rows) <= std::numeric_limits<int>::max(),
            "batch, rows and heads: too many thread blocks");
  }
  return plan;
}

/// As many of the blocks from `first` on as one launch takes.
std::span<const forward_arguments> of_one_launch(std::span<const forward_arguments> blocks,
                                                 std::size_t first) {
  return blocks.subspan(first,
                        std::min<std::size_t>(blocks.size() - first, decode_parameters::most));
}

std::size_t found_bytes(const decode_plan& plan, std::int64_t value_dim) {
  return static_cast<std::size_t>(plan.found * (value_dim + 1)) * sizeof(float);
}

bool is_first_of(const tensor_view<const void>& part, const tensor_view<const void>& whole) {
  return part.data == whole.data && part.batch_stride == whole.batch_stride &&
         part.token_stride == whole.token_stride && part.head_stride == whole.head_stride;
}

void launch(void (*run)(decode_parameters), std::int64_t blocks, int threads, int shared_bytes,
            cudaStream_t queue, const char* what, const decode_parameters& p) {
  if (compute_capability() >= 9)
    return launch_dependent(run, static_cast<unsigned>(blocks), static_cast<unsigned>(threads),
                            static_cast<std::size_t>(shared_bytes), queue, what, p);
  run<<<static_cast<unsigned>(blocks), threads, shared_bytes, queue>>>(p);
  check(cudaGetLastError(), what);
}

/// A thread block a row: groups of ValueD / 4 threads take turns at the splits.
template <class T, int ValueD>
__global__ void combine_run(const __grid_constant__ decode_parameters parameters) {
  wait_for_predecessors();
  release_successors();
  constexpr int width = ValueD / 4, most_turns = 1024 / width;
  __shared__ float4 sums[most_turns][width];
  const forward_parameters& p = parameters.block;
  const decode_request& request =
      parameters.requests[parameters.request_at(&decode_request::rows_before, blockIdx.x)];
  const int splits = request.splits;
  if (splits == 1) return;
  const std::int64_t row = blockIdx.x - request.rows_before, rows = rows_of(request, p.heads);
  const float* const ls = parameters.found_l + request.found_before + row * splits;
  const float* const found = parameters.found + request.found_before * ValueD;
  const int lane = threadIdx.x % 32, turn = threadIdx.x / width, turns = blockDim.x / width;
  const int d = threadIdx.x % width;

  float high = -INFINITY, total = 0;
#pragma unroll 8
  for (int s = lane; s < splits; s += 32) high = fmaxf(high, ls[s]);
  for (int step = 16; step > 0; step /= 2) high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
  const float shift = high == -INFINITY ? 0.f : high;
#pragma unroll 8
  for (int s = lane; s < splits; s += 32) total += __expf(ls[s] - shift);
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  const float l = total > 0 ? high + logf(total) : -INFINITY;

  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
  for (int s = turn; s < splits; s += turns) {
    const float weight = total > 0 ? __expf(ls[s] - l) : 0.f;
    const float4 x = *reinterpret_cast<const float4*>(found + (s * rows + row) * ValueD + 4 * d);
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
  const int token = static_cast<int>(row / p.heads % request.rows);
  const int batch = static_cast<int>(row / p.heads / request.rows);
  if (d == 0) *at<float>(request.l, p.l_stride, batch, token, head) = l;
  if (p.fp32_output) {
    *reinterpret_cast<float4*>(at<float>(request.o, p.o_stride, batch, token, head) + 4 * d) = sum;
  } else {
    *reinterpret_cast<uint2*>(at<T>(request.o, p.o_stride, batch, token, head) + 4 * d) =
        make_uint2(pack<T>(sum.x, sum.y), pack<T>(sum.z, sum.w));
  }
}

template <class T>
void combine(const decode_plan& plan, int value_dim, cudaStream_t queue) {
  const auto run = value_dim == 64    ? combine_run<T, 64>
                   : value_dim == 128 ? combine_run<T, 128>
                                      : combine_run<T, latent_values>;
  const int width = value_dim / 4;
  int turns = std::max(32 / width, 1), most_splits = 1;
  for (int i = 0; i < plan.parameters.count; ++i)
    most_splits = std::max(most_splits, plan.parameters.requests[i].splits);
  while (turns * width < 512 && turns * 2 <= most_splits) turns *= 2;
  launch(run, plan.rows, turns * width, 0, queue, "combine", plan.parameters);
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

bool decode_alike(const forward_arguments& a, const forward_arguments& b) {
  const auto same_strides = [](const auto& x, const auto& y) {
    return x.batch_stride == y.batch_stride && x.token_stride == y.token_stride &&
           x.head_stride == y.head_stride;
  };
  const auto of = [](const forward_arguments& f) {
    return std::tuple(f.type, f.output, f.shape.heads, f.shape.kv_heads, f.shape.head_dim,
                      f.shape.value_dim(), f.shape.scale);
  };
  return of(a) == of(b) && same_strides(a.q, b.q) && same_strides(a.k, b.k) &&
         same_strides(a.v, b.v) && same_strides(a.o, b.o) && same_strides(a.l, b.l);
}

std::size_t decode_workspace(std::span<const forward_arguments> blocks) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < blocks.size(); i += decode_parameters::most) {
    const auto value_dim = blocks.front().shape.value_dim();
    most = std::max(most, found_bytes(plan_of(of_one_launch(blocks, i)), value_dim));
  }
  return most;
}

void decode(std::span<const forward_arguments> blocks, void* workspace, stream queue) {
  for (const auto& a : blocks) {
    require(decode_available(a.shape), "no kernel of few rows for head_dim " +
                                           std::to_string(a.shape.head_dim) + " beside values of " +
                                           std::to_string(a.shape.value_dim()));
    require(a.shape.head_dim != latent_dim || is_first_of(a.v, a.k),
            "values of 512 elements a head beside keys of 576: expected to be their first");
    require(decode_alike(a, blocks.front()), "blocks of one call: expected alike but for lengths");
  }
  for (std::size_t i = 0; i < blocks.size(); i += decode_parameters::most) {
    auto plan = plan_of(of_one_launch(blocks, i));
    if (plan.blocks == 0) continue;
    const auto value_dim = static_cast<int>(blocks.front().shape.value_dim());
    plan.parameters.found = static_cast<float*>(workspace);
    plan.parameters.found_l = plan.parameters.found + plan.found * value_dim;
    launch(plan.entry.run, plan.blocks, plan.entry.threads, plan.entry.shared_bytes, queue,
           "decode", plan.parameters);
    if (!plan.splits) continue;
    blocks.front().type == element::bf16 ? combine<__nv_bfloat16>(plan, value_dim, queue)
                                         : combine<__half>(plan, value_dim, queue);
  }
}

}  // namespace attnsim::kernels::cuda
