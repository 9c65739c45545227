// The memory-bound kernels of a transformer's layer, 8 elements (16 bytes of bf16) at a time. A norm has a block of threads a row; its
// gradient has blocks that go through rows, with the next row on its way, and keep the weight's gradient of their columns in
// registers until the end. Rotations and gates have a thread a chunk, without divisions by sizes.
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/layer.hpp"

namespace attnsim::kernels::cuda {

using elementwise::operand;

namespace {

element element_of(data_type type) {
  return type == data_type::bf16   ? element::bf16
         : type == data_type::fp16 ? element::fp16
                                   : element::fp32;
}

/// rows x width as tokens of one head.
operand matrix(const void* data, data_type type, std::int64_t width) {
  return tensor{element_of(type), {const_cast<void*>(data), 0, width, width}};
}

/// A row has at most so many chunks a thread.
constexpr int chunks_a_thread = 2;
constexpr int most_threads = 1024;

__device__ float sum_of_block(float value) {
  __shared__ float of_warp[most_threads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  __syncthreads();  // all have read the sums of the row before
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += of_warp[i];
  return sum;
}

/// The i-th chunk of a thread.
__device__ int chunk_of(int i) {
  return static_cast<int>(i * blockDim.x + threadIdx.x);
}

struct norm_parameters {
  operand residual, branch, weight, sum, result;
  float* scale;
  int chunks;
};

__global__ void __launch_bounds__(most_threads) norm_run(norm_parameters p) {
  const std::int64_t row = blockIdx.x;
  float square = 0, x[chunks_a_thread][8], y[8];
#pragma unroll
  for (int i = 0; i < chunks_a_thread; ++i) {
    const int chunk = chunk_of(i);
    if (chunk >= p.chunks) break;
    p.residual.load(x[i], 0, row, 0, chunk * 8);
    p.branch.load(y, 0, row, 0, chunk * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      x[i][e] += y[e];
      square += x[i][e] * x[i][e];
    }
    p.sum.store(x[i], 0, row, 0, chunk * 8);
  }
  const float scale =
      rsqrtf(sum_of_block(square) / static_cast<float>(p.chunks * 8) + norm_epsilon);
  if (threadIdx.x == 0) p.scale[row] = scale;
#pragma unroll
  for (int i = 0; i < chunks_a_thread; ++i) {
    const int chunk = chunk_of(i);
    if (chunk >= p.chunks) break;
    p.weight.load(y, 0, 0, 0, chunk * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) x[i][e] *= scale * y[e];
    p.result.store(x[i], 0, row, 0, chunk * 8);
  }
}

/// sm_90 adds four at a time.
__device__ void add_to(float* sums, const float (&values)[8]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#pragma unroll
  for (int e = 0; e < 8; e += 4)
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(sums + e), "f"(values[e]),
                 "f"(values[e + 1]), "f"(values[e + 2]), "f"(values[e + 3])
                 : "memory");
#else
#pragma unroll
  for (int e = 0; e < 8; ++e) atomicAdd(sums + e, values[e]);
#endif
}

struct norm_gradient_parameters {
  operand sum, weight, result_gradient, residual_gradient, sum_gradient;
  const float* scale;
  float* weight_gradient;
  std::int64_t rows;
  int chunks;
};

__global__ void __launch_bounds__(most_threads / 2) norm_gradient_run(norm_gradient_parameters p) {
  float of_weight[chunks_a_thread][8] = {};
  float x[chunks_a_thread][8], dy[chunks_a_thread][8], next_x[chunks_a_thread][8],
      next_dy[chunks_a_thread][8];
  const auto load = [&](float(&to_x)[chunks_a_thread][8], float(&to_dy)[chunks_a_thread][8],
                        std::int64_t row) {
#pragma unroll
    for (int i = 0; i < chunks_a_thread; ++i) {
      const int chunk = chunk_of(i);
      if (chunk >= p.chunks || row >= p.rows) break;
      p.sum.load(to_x[i], 0, row, 0, chunk * 8);
      p.result_gradient.load(to_dy[i], 0, row, 0, chunk * 8);
    }
  };
  load(x, dy, blockIdx.x);
  for (std::int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    load(next_x, next_dy, row + gridDim.x);
    float dot = 0, w[8], other[chunks_a_thread][8];
#pragma unroll
    for (int i = 0; i < chunks_a_thread; ++i) {
      const int chunk = chunk_of(i);
      if (chunk >= p.chunks) break;
      p.residual_gradient.load(other[i], 0, row, 0, chunk * 8);
      p.weight.load(w, 0, 0, 0, chunk * 8);
#pragma unroll
      for (int e = 0; e < 8; ++e) dot += x[i][e] * w[e] * dy[i][e];
    }
    const float scale = p.scale[row];
    const float along = sum_of_block(dot) / static_cast<float>(p.chunks * 8) * scale * scale;
#pragma unroll
    for (int i = 0; i < chunks_a_thread; ++i) {
      const int chunk = chunk_of(i);
      if (chunk >= p.chunks) break;
      p.weight.load(w, 0, 0, 0, chunk * 8);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        of_weight[i][e] += x[i][e] * scale * dy[i][e];
        other[i][e] += scale * (w[e] * dy[i][e] - x[i][e] * along);
        x[i][e] = next_x[i][e];
        dy[i][e] = next_dy[i][e];
      }
      p.sum_gradient.store(other[i], 0, row, 0, chunk * 8);
    }
  }
#pragma unroll
  for (int i = 0; i < chunks_a_thread; ++i) {
    const int chunk = chunk_of(i);
    if (chunk >= p.chunks) break;
    add_to(p.weight_gradient + chunk * 8, of_weight[i]);
  }
}

int chunks_of(std::int64_t width, std::int64_t most, const char* what) {
  if (width % 8 != 0 || width / 8 > most) {
    throw infeasible(std::string(what) + ": width must be a multiple of 8 and at most " +
                     std::to_string(8 * most));
  }
  return static_cast<int>(width / 8);
}

/// Whole warps.
unsigned threads_for(int chunks) {
  const int lanes = (chunks + chunks_a_thread - 1) / chunks_a_thread;
  return static_cast<unsigned>((lanes + 31) / 32 * 32);
}

constexpr int block = 256;

/// body(row, chunk) of all chunks of all rows.
template <class Body>
__global__ void __launch_bounds__(block) each_of_row(std::int64_t rows, int chunks, Body body) {
  const int chunk = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (chunk >= chunks) return;
  for (std::int64_t row = blockIdx.y * blockDim.y + threadIdx.y; row < rows;
       row += gridDim.y * blockDim.y)
    body(row, chunk);
}

template <class Body>
void run(std::int64_t rows, std::int64_t chunks, stream queue, const char* what, Body body) {
  constexpr std::int64_t most_blocks = 65535;
  int across = block;
  while (across > 32 && across / 2 >= chunks) across /= 2;
  const int down = block / across;
  const dim3 grid(static_cast<unsigned>((chunks + across - 1) / across),
                  static_cast<unsigned>(std::min(most_blocks, (rows + down - 1) / down)));
  each_of_row<<<grid, dim3(static_cast<unsigned>(across), static_cast<unsigned>(down)), 0, queue>>>(
      rows, static_cast<int>(chunks), body);
  check(cudaGetLastError(), what);
}

__device__ float sigmoid(float x) {
  return __fdividef(1.f, 1.f + __expf(-x));
}

}  // namespace

void norm(const norm_arguments& a, stream queue) {
  const auto of = [&](const void* data) { return matrix(data, a.type, a.width); };
  const int chunks = chunks_of(a.width, most_threads * chunks_a_thread, "norm");
  const norm_parameters p{of(a.residual), of(a.branch), of(a.weight), of(a.sum),
                          of(a.result),   a.scale,      chunks};
  norm_run<<<static_cast<unsigned>(a.rows), threads_for(chunks), 0, queue>>>(p);
  check(cudaGetLastError(), "norm");
}

void norm_gradient(const norm_gradient_arguments& a, stream queue) {
  constexpr int threads_a_multiprocessor = 512;
  const auto of = [&](const void* data) { return matrix(data, a.type, a.width); };
  const int chunks = chunks_of(a.width, most_threads / 2 * chunks_a_thread, "norm gradient");
  if (reinterpret_cast<std::uintptr_t>(a.weight_gradient) % 16 != 0)
    throw infeasible("norm gradient: the weights' gradient must be 16-byte aligned");
  const norm_gradient_parameters p{of(a.sum),
                                   of(a.weight),
                                   of(a.result_gradient),
                                   of(a.residual_gradient),
                                   of(a.sum_gradient),
                                   a.scale,
                                   a.weight_gradient,
                                   a.rows,
                                   chunks};
  const auto threads = threads_for(chunks);
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(
      a.rows, multiprocessors() * std::max(1, threads_a_multiprocessor / int(threads))));
  norm_gradient_run<<<blocks, threads, 0, queue>>>(p);
  check(cudaGetLastError(), "norm gradient");
}

void gate(const gate_arguments& a, stream queue) {
  const auto width = static_cast<int>(a.width);
  const operand in = matrix(a.inputs, a.type, 2 * a.width), out = matrix(a.result, a.type, a.width);
  run(a.rows, chunks_of(a.width, 1 << 20, "gate"), queue, "gate",
      [=] __device__(std::int64_t row, int chunk) {
        const int d = chunk * 8;
        float g[8], u[8];
        in.load(g, 0, row, 0, d);
        in.load(u, 0, row, 0, width + d);
#pragma unroll
        for (int e = 0; e < 8; ++e) g[e] *= sigmoid(g[e]) * u[e];
        out.store(g, 0, row, 0, d);
      });
}

void gate_gradient(const gate_gradient_arguments& a, stream queue) {
  const auto width = static_cast<int>(a.width);
  const operand in = matrix(a.inputs, a.type, 2 * a.width),
                dy = matrix(a.result_gradient, a.type, a.width),
                out = matrix(a.input_gradient, a.type, 2 * a.width);
  run(a.rows, chunks_of(a.width, 1 << 20, "gate gradient"), queue, "gate gradient",
      [=] __device__(std::int64_t row, int chunk) {
        const int d = chunk * 8;
        float g[8], u[8], y[8];
        in.load(g, 0, row, 0, d);
        in.load(u, 0, row, 0, width + d);
        dy.load(y, 0, row, 0, d);
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const float s = sigmoid(g[e]), x = g[e];
          g[e] = y[e] * u[e] * s * (1.f + x * (1.f - s));
          u[e] = y[e] * x * s;
        }
        out.store(g, 0, row, 0, d);
        out.store(u, 0, row, 0, width + d);
      });
}

void rotate(const extents& shape, const tensor& to, const tensor& from, const float* angles,
            bool back, stream queue) {
  if (shape.head_dim % 16 != 0) throw infeasible("rotation: head_dim must be a multiple of 16");
  const operand a = to, b = from, table = matrix(angles, data_type::fp32, shape.head_dim);
  const int half = static_cast<int>(shape.head_dim / 2), chunks = half / 8,
            batches = static_cast<int>(shape.batch);
  const float direction = back ? -1.f : 1.f;
  run(shape.tokens * shape.batch, shape.heads * chunks, queue, "rotation",
      [=] __device__(std::int64_t row, int place) {
        const std::int64_t token = batches == 1 ? row : row / batches;
        const int batch = batches == 1 ? 0 : static_cast<int>(row % batches);
        const int head = place / chunks, d = place % chunks * 8;
        float x[8], y[8], cosine[8], sine[8];
        b.load(x, batch, token, head, d);
        b.load(y, batch, token, head, d + half);
        table.load(cosine, 0, token, 0, d);
        table.load(sine, 0, token, 0, d + half);
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const float s = direction * sine[e], before = x[e];
          x[e] = before * cosine[e] - y[e] * s;
          y[e] = y[e] * cosine[e] + before * s;
        }
        a.store(x, batch, token, head, d);
        a.store(y, batch, token, head, d + half);
      });
}

}  // namespace attnsim::kernels::cuda
