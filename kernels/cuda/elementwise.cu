// The memory-bound kernels around attention: merge, weights, row products, sums, copies, token orders, backward's prologue and
// epilogue.
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/elementwise.hpp"

namespace attnsim::kernels::cuda {

using namespace elementwise;

namespace {

tensor_view<void> const_view(const tensor_view<const void>& v) {
  return {const_cast<void*>(v.data), v.batch_stride, v.token_stride, v.head_stride};
}

/// The row that this thread works on with its neighbours, and its place among them.
struct shared_row {
  int batch, head, lane;
  std::int64_t token;
  bool valid;  ///< false behind the last row
};

__device__ shared_row row_of(const sizes& s, int lanes) {
  const std::int64_t row = (blockIdx.x * std::int64_t{threads} + threadIdx.x) / lanes;
  return {static_cast<int>(row / s.heads / s.tokens), static_cast<int>(row % s.heads),
          static_cast<int>(threadIdx.x % lanes), row / s.heads % s.tokens,
          row < s.batch * s.tokens * s.heads};
}

/// <dO, O> by a group of lanes a row, 8 elements a lane.
__global__ void __launch_bounds__(threads)
    row_dot_run(sizes s, operand d_o, operand o, operand delta, int lanes) {
  const auto [batch, head, lane, token, valid] = row_of(s, lanes);
  float sum = 0;
  for (int chunk = lane; valid && chunk < s.chunks; chunk += lanes) {
    float x[8], y[8];
    d_o.load(x, batch, token, head, chunk * 8);
    o.load(y, batch, token, head, chunk * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) sum += x[e] * y[e];
  }
  for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (valid && lane == 0) *delta.statistic(batch, token, head) = sum;
}

__global__ void __launch_bounds__(threads)
    merge_run(sizes s, operand o, operand l, operand part, operand part_l, int lanes) {
  const auto [batch, head, lane, token, valid] = row_of(s, lanes);
  if (!valid) return;
  float* const l_at = l.statistic(batch, token, head);
  const float a = *l_at, b = *part_l.statistic(batch, token, head);
  // Every lane of the row has read L before one writes it: the group lies in one warp.
  __syncwarp(__activemask());
  const float high = fmaxf(a, b);
  const float sum = high == -INFINITY ? 0.f : __expf(a - high) + __expf(b - high);
  const float both = sum > 0 ? high + __logf(sum) : -INFINITY;
  const float x_factor = sum > 0 ? __expf(a - both) : 0.f,
              y_factor = sum > 0 ? __expf(b - both) : 0.f;
  if (lane == 0) *l_at = both;
  for (int chunk = lane; chunk < s.chunks; chunk += lanes) {
    float x[8], y[8];
    o.load(x, batch, token, head, chunk * 8);
    part.load(y, batch, token, head, chunk * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      // A side with factor 0 has no part in the sum, whatever its memory holds.
      x[e] = (x_factor > 0 ? x[e] * x_factor : 0.f) + (y_factor > 0 ? y[e] * y_factor : 0.f);
    }
    o.store(x, batch, token, head, chunk * 8);
  }
}

/// Every lane of a row adds up all parts' exp(L).
__global__ void __launch_bounds__(threads)
    weigh_run(sizes s, operand o, operand part_l, int parts, int own, operand l, int lanes) {
  const auto [batch, head, lane, token, valid] = row_of(s, lanes);
  if (!valid) return;
  const auto of_part = [&, batch = batch, token = token, head = head](int part) {
    return *part_l.statistic(batch, part * s.tokens + token, head);
  };
  float high = -INFINITY, sum = 0.f;
  for (int part = 0; part < parts; ++part) high = fmaxf(high, of_part(part));
  for (int part = 0; part < parts && high > -INFINITY; ++part) sum += __expf(of_part(part) - high);
  const float whole = sum > 0 ? high + __logf(sum) : -INFINITY;
  const float factor = of_part(own) > -INFINITY ? __expf(of_part(own) - whole) : 0.f;
  if (lane == 0) *l.statistic(batch, token, head) = whole;
  for (int chunk = lane; chunk < s.chunks; chunk += lanes) {
    float x[8];
    o.load(x, batch, token, head, chunk * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] = factor > 0 ? x[e] * factor : 0.f;
    o.store(x, batch, token, head, chunk * 8);
  }
}

__global__ void __launch_bounds__(threads)
    sink_run(sizes s, operand o, operand l, operand sinks, float less, int lanes) {
  const auto [batch, head, lane, token, valid] = row_of(s, lanes);
  if (!valid) return;
  float* const l_at = l.statistic(batch, token, head);
  const float seen = *l_at, sunk = *sinks.statistic(batch, token, head) - less;
  __syncwarp(__activemask());  // as in merge_run
  const float high = fmaxf(seen, sunk);
  const float both = high + __logf(__expf(seen - high) + __expf(sunk - high));
  const float factor = __expf(seen - both);
  if (lane == 0) *l_at = both;
  for (int chunk = lane; chunk < s.chunks; chunk += lanes) {
    float x[8];
    o.load(x, batch, token, head, chunk * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] = factor > 0 ? x[e] * factor : 0.f;
    o.store(x, batch, token, head, chunk * 8);
  }
}

/// O = dO delta / |dO|^2 by a group of lanes a row, 8 elements a lane.
__global__ void __launch_bounds__(threads)
    output_with_delta_run(sizes s, operand d_o, operand delta, operand o, int lanes) {
  const auto [batch, head, lane, token, valid] = row_of(s, lanes);
  float square = 0, x[8];
  for (int chunk = lane; valid && chunk < s.chunks; chunk += lanes) {
    d_o.load(x, batch, token % s.tokens, head, chunk * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) square += x[e] * x[e];
  }
  for (int step = lanes / 2; step > 0; step /= 2) square += __shfl_xor_sync(~0u, square, step);
  if (!valid) return;
  const float factor = square > 0 ? *delta.statistic(batch, token % s.tokens, head) / square : 0.f;
  for (int chunk = lane; chunk < s.chunks; chunk += lanes) {
    d_o.load(x, batch, token % s.tokens, head, chunk * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] *= factor;
    o.store(x, batch, token % s.tokens, head, chunk * 8);
  }
}

struct row_launch {
  sizes s;
  int lanes;
  unsigned blocks;
};
row_launch rows_of(const extents& shape) {
  row_launch r{{shape.tokens, static_cast<int>(shape.batch), static_cast<int>(shape.heads),
                static_cast<int>(shape.head_dim / 8)},
               1,
               0};
  while (r.lanes < 32 && r.lanes * 2 <= r.s.chunks) r.lanes *= 2;
  r.blocks = static_cast<unsigned>(
      (shape.batch * shape.tokens * shape.heads * r.lanes + threads - 1) / threads);
  return r;
}

struct prologue_parameters {
  operand l, delta, d_o, o;
  float *to_l, *to_delta;
  float4* d_q;
  std::int64_t vectors;  // of d_q
  int batch, heads, rows, padded_rows, chunks;
};

__global__ void __launch_bounds__(threads) prologue_run(prologue_parameters p) {
  release_successors();
  const std::int64_t step = gridDim.x * std::int64_t{threads},
                     start = blockIdx.x * std::int64_t{threads} + threadIdx.x;
  for (std::int64_t i = start; i < p.vectors; i += step) p.d_q[i] = make_float4(0, 0, 0, 0);
  // A group of 8 lanes a row computes delta where it isn't given.
  const int lanes = p.delta.data == nullptr ? 8 : 1;
  const std::int64_t statistics = std::int64_t{p.batch} * p.heads * p.padded_rows;
  for (std::int64_t n = start; n / lanes < (statistics + 3) / 4 * 4;
       n += step) {  // whole warps, for the shuffles
    const std::int64_t i = n / lanes;
    const int row = static_cast<int>(i % p.padded_rows),
              head = static_cast<int>(i / p.padded_rows % p.heads);
    const int batch = static_cast<int>(i / p.padded_rows / p.heads);
    const bool valid = i < statistics && row < p.rows;
    float delta = 0;
    if (lanes == 1) {
      if (valid) delta = *p.delta.statistic(batch, row, head);
    } else {
      for (int chunk = threadIdx.x % lanes; valid && chunk < p.chunks; chunk += lanes) {
        float x[8], y[8];
        p.d_o.load(x, batch, row, head, chunk * 8);
        p.o.load(y, batch, row, head, chunk * 8);
#pragma unroll
        for (int e = 0; e < 8; ++e) delta += x[e] * y[e];
      }
      for (int distance = lanes / 2; distance > 0; distance /= 2)
        delta += __shfl_xor_sync(~0u, delta, distance);
    }
    if (i >= statistics || threadIdx.x % lanes != 0) continue;
    const float l = valid ? *p.l.statistic(batch, row, head) : -INFINITY;
    p.to_l[i] = l == -INFINITY ? INFINITY : l * log2_e;
    p.to_delta[i] = delta;
  }
}

}  // namespace

void row_dot(const extents& shape, const tensor& d_o, const tensor& o, tensor_view<float> delta,
             stream queue) {
  const row_launch r = rows_of(shape);
  if (r.blocks == 0) return;
  row_dot_run<<<r.blocks, threads, 0, queue>>>(r.s, d_o, o, delta, r.lanes);
  check(cudaGetLastError(), "row_dot");
}

void merge(const extents& shape, const tensor& o, tensor_view<float> l, const tensor& part,
           tensor_view<const float> part_l, stream queue) {
  const row_launch r = rows_of(shape);
  if (r.blocks == 0) return;
  merge_run<<<r.blocks, threads, 0, queue>>>(r.s, o, l, part, part_l, r.lanes);
  check(cudaGetLastError(), "merge");
}

void weigh(const extents& shape, const tensor& o, tensor_view<const float> part_l,
           std::int64_t parts, std::int64_t own, tensor_view<float> l, stream queue) {
  const row_launch r = rows_of(shape);
  if (r.blocks == 0) return;
  weigh_run<<<r.blocks, threads, 0, queue>>>(r.s, o, part_l, static_cast<int>(parts),
                                             static_cast<int>(own), l, r.lanes);
  check(cudaGetLastError(), "weigh");
}

void sink(const extents& shape, const tensor& o, tensor_view<float> l,
          tensor_view<const float> sinks, std::int64_t parts, stream queue) {
  const row_launch r = rows_of(shape);
  if (r.blocks == 0) return;
  sink_run<<<r.blocks, threads, 0, queue>>>(r.s, o, l, sinks, std::log(static_cast<float>(parts)),
                                            r.lanes);
  check(cudaGetLastError(), "sink");
}

void output_with_delta(const extents& shape, const tensor& d_o, tensor_view<const float> delta,
                       const tensor& o, stream queue) {
  const row_launch r = rows_of(shape);
  if (r.blocks == 0) return;
  output_with_delta_run<<<r.blocks, threads, 0, queue>>>(r.s, d_o, delta, o, r.lanes);
  check(cudaGetLastError(), "output_with_delta");
}

void accumulate(const extents& shape, const tensor& to, const tensor& from, stream queue) {
  const operand a = to, b = from;
  run(shape, queue, "accumulate", [=] __device__(int batch, std::int64_t token, int head, int d) {
    float x[8], y[8];
    a.load(x, batch, token, head, d);
    b.load(y, batch, token, head, d);
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] += y[e];
    a.store(x, batch, token, head, d);
  });
}

void copy(const extents& shape, const tensor& to, const tensor& from, stream queue) {
  const operand a = to, b = from;
  if (shape.head_dim == 1) {
    run(shape, queue, "copy", [=] __device__(int batch, std::int64_t token, int head, int) {
      *a.statistic(batch, token, head) = *b.statistic(batch, token, head);
    });
    return;
  }
  run(shape, queue, "copy", [=] __device__(int batch, std::int64_t token, int head, int d) {
    float x[8];
    b.load(x, batch, token, head, d);
    a.store(x, batch, token, head, d);
  });
}

namespace {
void reorder(const extents& shape, std::int64_t parts, const tensor& to, const tensor& from,
             bool inverse, stream queue) {
  if (parts <= 0 || shape.tokens % parts != 0)
    throw infeasible("interleave: tokens must be a multiple of parts");
  const operand a = to, b = from;
  const std::int64_t run_length = shape.tokens / parts;
  const bool statistics = shape.head_dim == 1;
  run(shape, queue, "interleave", [=] __device__(int batch, std::int64_t token, int head, int d) {
    const std::int64_t consecutive = token % parts * run_length + token / parts;
    const std::int64_t source = inverse ? token : consecutive,
                       target = inverse ? consecutive : token;
    if (statistics) {
      *a.statistic(batch, target, head) = *b.statistic(batch, source, head);
      return;
    }
    float x[8];
    b.load(x, batch, source, head, d);
    a.store(x, batch, target, head, d);
  });
}
}  // namespace

void interleave(const extents& shape, std::int64_t parts, const tensor& to, const tensor& from,
                stream queue) {
  reorder(shape, parts, to, from, false, queue);
}
void deinterleave(const extents& shape, std::int64_t parts, const tensor& to, const tensor& from,
                  stream queue) {
  reorder(shape, parts, to, from, true, queue);
}

void fill(const extents& shape, const tensor& to, float value, stream queue) {
  const operand a = to;
  const bool statistics = shape.head_dim == 1;
  run(shape, queue, "fill", [=] __device__(int batch, std::int64_t token, int head, int d) {
    if (statistics) {
      *a.statistic(batch, token, head) = value;
      return;
    }
    const float x[8] = {value, value, value, value, value, value, value, value};
    a.store(x, batch, token, head, d);
  });
}

void clear(const extents& shape, const tensor& o, tensor_view<float> l, stream queue) {
  const operand a = o, b = l;
  run(shape, queue, "clear", [=] __device__(int batch, std::int64_t token, int head, int d) {
    const float zero[8] = {};
    a.store(zero, batch, token, head, d);
    if (d == 0 && b.data != nullptr) *b.statistic(batch, token, head) = -INFINITY;
  });
}

void backward_prologue(const backward_arguments& a, float* l, float* delta, float* d_q,
                       int padded_rows, cudaStream_t queue) {
  const block_shape& s = a.shape;
  const prologue_parameters p{a.l,
                              a.delta,
                              tensor{a.type, const_view(a.d_o)},
                              tensor{a.type, const_view(a.o)},
                              l,
                              delta,
                              reinterpret_cast<float4*>(d_q),
                              s.batch * s.heads * padded_rows * s.head_dim / 4,
                              static_cast<int>(s.batch),
                              static_cast<int>(s.heads),
                              static_cast<int>(s.rows),
                              padded_rows,
                              static_cast<int>(s.head_dim / 8)};
  const auto blocks = static_cast<unsigned>(
      std::min<std::int64_t>((p.vectors + 4 * threads - 1) / (4 * threads), 132 * 16));
  prologue_run<<<blocks, threads, 0, queue>>>(p);
  check(cudaGetLastError(), "backward: prologue");
}

void backward_epilogue(const backward_arguments& a, const float* d_q, float scale, int padded_rows,
                       bool hopper_layout, cudaStream_t queue) {
  const block_shape& s = a.shape;
  const operand to = tensor{a.gradient, a.d_q};
  const int dims = static_cast<int>(s.head_dim), heads = static_cast<int>(s.heads);
  run(
      {s.batch, s.rows, s.heads, s.head_dim}, queue, "backward: dQ",
      [=] __device__(int batch, std::int64_t token, int head, int d) {
        const float* from =
            d_q + (static_cast<std::int64_t>(batch) * heads + head) * padded_rows * dims;
        float x[8];
        if (hopper_layout) {  // a 64 x 64 piece is [d / 8][row / 16][row % 8][d % 8 / 2][row / 8 % 2][d % 2]
          const int row = static_cast<int>(token % 64);
          from += (token / 64 * (dims / 64) + d / 64) * 4096 + d % 64 / 8 * 512 + row / 16 * 128 +
                  row % 8 * 16 + row / 8 % 2 * 2;
#pragma unroll
          for (int e = 0; e < 8; ++e) x[e] = from[e / 2 * 4 + e % 2] * scale;
        } else {  // a 16 x 32 piece is [d / 8][row / 8 % 2][d % 2][row % 8][d % 8 / 2]
          const int row = static_cast<int>(token % 16);
          from += token / 16 * 16 * dims + d / 32 * 512 + (d % 32 / 8 * 4 + row / 8 * 2) * 32 +
                  row % 8 * 4;
          const float4 even = *reinterpret_cast<const float4*>(from),
                       odd = *reinterpret_cast<const float4*>(from + 32);
          x[0] = even.x * scale, x[1] = odd.x * scale, x[2] = even.y * scale, x[3] = odd.y * scale;
          x[4] = even.z * scale, x[5] = odd.z * scale, x[6] = even.w * scale, x[7] = odd.w * scale;
        }
        to.store(x, batch, token, head, d);
      },
      hopper_layout);
}

}  // namespace attnsim::kernels::cuda
