// The memory-bound kernels of a transformer's layer. A norm has a block of threads a row; its gradient has blocks that go through
// rows and keep the weight's gradient of their columns in registers until the end.
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/layer.hpp"

namespace attnsim::kernels::cuda {

using namespace elementwise;

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

__device__ float sum_of_block(float value) {
  __shared__ float of_warp[threads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  __syncthreads();  // all have read the sums of the row before
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < threads / 32; ++i) sum += of_warp[i];
  return sum;
}

struct norm_parameters {
  operand residual, branch, weight, sum, result;
  float* scale;
  int chunks;
};

__global__ void __launch_bounds__(threads) norm_run(norm_parameters p) {
  const std::int64_t row = blockIdx.x;
  float square = 0, x[8], y[8];
  for (int chunk = threadIdx.x; chunk < p.chunks; chunk += threads) {
    p.residual.load(x, 0, row, 0, chunk * 8);
    p.branch.load(y, 0, row, 0, chunk * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      x[e] += y[e];
      square += x[e] * x[e];
    }
    p.sum.store(x, 0, row, 0, chunk * 8);
  }
  const float scale =
      rsqrtf(sum_of_block(square) / static_cast<float>(p.chunks * 8) + norm_epsilon);
  if (threadIdx.x == 0) p.scale[row] = scale;
  for (int chunk = threadIdx.x; chunk < p.chunks; chunk += threads) {
    p.sum.load(x, 0, row, 0, chunk * 8);
    p.weight.load(y, 0, 0, 0, chunk * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] *= scale * y[e];
    p.result.store(x, 0, row, 0, chunk * 8);
  }
}

struct norm_gradient_parameters {
  operand sum, weight, result_gradient, residual_gradient, sum_gradient;
  const float* scale;
  float* weight_gradient;
  std::int64_t rows;
  int chunks;
};

/// A thread has at most Chunks times 8 columns.
template <int Chunks>
__global__ void __launch_bounds__(threads) norm_gradient_run(norm_gradient_parameters p) {
  float of_weight[Chunks][8] = {};
  for (std::int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    float x[8], w[8], dy[8], other[8], dot = 0;
    for (int chunk = threadIdx.x; chunk < p.chunks; chunk += threads) {
      p.sum.load(x, 0, row, 0, chunk * 8);
      p.weight.load(w, 0, 0, 0, chunk * 8);
      p.result_gradient.load(dy, 0, row, 0, chunk * 8);
#pragma unroll
      for (int e = 0; e < 8; ++e) dot += x[e] * w[e] * dy[e];
    }
    const float scale = p.scale[row];
    const float along = sum_of_block(dot) / static_cast<float>(p.chunks * 8) * scale * scale;
#pragma unroll
    for (int i = 0; i < Chunks; ++i) {
      const int chunk = i * threads + threadIdx.x;
      if (chunk >= p.chunks) break;
      p.sum.load(x, 0, row, 0, chunk * 8);
      p.weight.load(w, 0, 0, 0, chunk * 8);
      p.result_gradient.load(dy, 0, row, 0, chunk * 8);
      p.residual_gradient.load(other, 0, row, 0, chunk * 8);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        of_weight[i][e] += x[e] * scale * dy[e];
        other[e] += scale * (w[e] * dy[e] - x[e] * along);
      }
      p.sum_gradient.store(other, 0, row, 0, chunk * 8);
    }
  }
#pragma unroll
  for (int i = 0; i < Chunks; ++i) {
    const int chunk = i * threads + threadIdx.x;
    if (chunk >= p.chunks) break;
#pragma unroll
    for (int e = 0; e < 8; ++e) atomicAdd(p.weight_gradient + chunk * 8 + e, of_weight[i][e]);
  }
}

int chunks_of(std::int64_t width, const char* what) {
  if (width % 8 != 0) throw infeasible(std::string(what) + ": width must be a multiple of 8");
  return static_cast<int>(width / 8);
}

int multiprocessors() {
  int device = 0, count = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "device");
  return count;
}

__device__ float sigmoid(float x) {
  return 1.f / (1.f + __expf(-x));
}

}  // namespace

void norm(const norm_arguments& a, stream queue) {
  const auto of = [&](const void* data) { return matrix(data, a.type, a.width); };
  const norm_parameters p{of(a.residual),
                          of(a.branch),
                          of(a.weight),
                          of(a.sum),
                          of(a.result),
                          a.scale,
                          chunks_of(a.width, "norm")};
  norm_run<<<static_cast<unsigned>(a.rows), threads, 0, queue>>>(p);
  check(cudaGetLastError(), "norm");
}

void norm_gradient(const norm_gradient_arguments& a, stream queue) {
  constexpr int blocks_a_multiprocessor = 4;
  const auto of = [&](const void* data) { return matrix(data, a.type, a.width); };
  const norm_gradient_parameters p{of(a.sum),
                                   of(a.weight),
                                   of(a.result_gradient),
                                   of(a.residual_gradient),
                                   of(a.sum_gradient),
                                   a.scale,
                                   a.weight_gradient,
                                   a.rows,
                                   chunks_of(a.width, "norm gradient")};
  const auto blocks = static_cast<unsigned>(
      std::min<std::int64_t>(a.rows, std::int64_t{blocks_a_multiprocessor} * multiprocessors()));
  void (*kernel)(norm_gradient_parameters) = p.chunks <= threads       ? norm_gradient_run<1>
                                             : p.chunks <= 2 * threads ? norm_gradient_run<2>
                                             : p.chunks <= 4 * threads ? norm_gradient_run<4>
                                                                       : norm_gradient_run<8>;
  if (p.chunks > 8 * threads) throw infeasible("norm gradient: width must be at most 16384");
  kernel<<<blocks, threads, 0, queue>>>(p);
  check(cudaGetLastError(), "norm gradient");
}

void gate(const gate_arguments& a, stream queue) {
  const auto width = static_cast<int>(a.width);
  const operand in = matrix(a.inputs, a.type, 2 * a.width), out = matrix(a.result, a.type, a.width);
  run({1, a.rows, 1, a.width}, queue, "gate", [=] __device__(int, std::int64_t row, int, int d) {
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
  run({1, a.rows, 1, a.width}, queue, "gate gradient",
      [=] __device__(int, std::int64_t row, int, int d) {
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
  const operand a = to, b = from;
  const int half = static_cast<int>(shape.head_dim / 2);
  const float direction = back ? -1.f : 1.f;
  run({shape.batch, shape.tokens, shape.heads, half}, queue, "rotation",
      [=] __device__(int batch, std::int64_t token, int head, int d) {
        float x[8], y[8];
        b.load(x, batch, token, head, d);
        b.load(y, batch, token, head, d + half);
        const float *cosines = angles + token * 2 * half + d, *sines = cosines + half;
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const float cosine = cosines[e], sine = direction * sines[e], before = x[e];
          x[e] = before * cosine - y[e] * sine;
          y[e] = y[e] * cosine + before * sine;
        }
        a.store(x, batch, token, head, d);
        a.store(y, batch, token, head, d + half);
      });
}

}  // namespace attnsim::kernels::cuda
