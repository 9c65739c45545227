// What the GPU programs share: device buffers, random blocks, the fp64 reference, errors, timing.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/attention.hpp"
#include "tests/gpu/rival.hpp"

namespace attnsim::kernels {

inline void cuda_check(cudaError_t error, const char* where, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s\n", where, line, cudaGetErrorString(error));
  std::exit(3);
}
#define CUDA_CHECK(call) ::attnsim::kernels::cuda_check((call), __FILE__, __LINE__)

/// Device memory; `poison` fills it with NaN patterns.
struct buffer {
  void* data = nullptr;
  std::size_t bytes = 0;

  explicit buffer(std::size_t size = 0) : bytes(std::max<std::size_t>(size, 256)) {
    CUDA_CHECK(cudaMalloc(&data, bytes));
  }
  buffer(const buffer&) = delete;
  buffer(buffer&& other) noexcept : data(std::exchange(other.data, nullptr)), bytes(other.bytes) {}
  ~buffer() { cudaFree(data); }
  void poison() { CUDA_CHECK(cudaMemset(data, 0xff, bytes)); }
  float* floats() const { return static_cast<float*>(data); }
  double* doubles() const { return static_cast<double*>(data); }
};

/// A (batch, tokens, heads, dim) tensor and where it lies in its buffer.
struct device_tensor {
  cuda::element type;
  std::int64_t batch, tokens, heads, dim;
  std::int64_t batch_stride, token_stride, head_stride;
  buffer memory;

  /// token_major: heads of a token are neighbours (batch, token, head, d); else (batch, head, token, d). `gap`: unused
  /// elements after each token, to catch kernels that ignore strides.
  device_tensor(cuda::element t, std::int64_t b, std::int64_t n, std::int64_t h, std::int64_t d,
                bool token_major, std::int64_t gap = 0)
      : type(t),
        batch(b),
        tokens(n),
        heads(h),
        dim(d),
        batch_stride(n * h * d + n * gap * (token_major ? 1 : h)),
        token_stride(token_major ? h * d + gap : d + gap),
        head_stride(token_major ? d : n * (d + gap)),
        memory(static_cast<std::size_t>(b * batch_stride) * cuda::size_of(t)) {}

  template <class T>
  tensor_view<T> view() const {
    return {static_cast<T*>(memory.data), batch_stride, token_stride, head_stride};
  }
  cuda::tensor whole() const { return {type, view<void>()}; }
  std::int64_t elements() const { return batch * batch_stride; }
};

static __global__ void fill_normal(void* data, cuda::element type, std::int64_t count,
                                   unsigned seed, float scale) {
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += gridDim.x * std::int64_t{blockDim.x}) {
    unsigned long long x = (i + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    x ^= x >> 31;
    const float u = ((x >> 40) + 1) * (1.f / 16777217.f), w = (x & 0xFFFFFF) * (1.f / 16777216.f);
    const float value = scale * sqrtf(-2 * logf(u)) * cospif(2 * w);
    if (type == cuda::element::bf16) static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16(value);
    if (type == cuda::element::fp16) static_cast<__half*>(data)[i] = __float2half(value);
    if (type == cuda::element::fp32) static_cast<float*>(data)[i] = value;
  }
}
inline void randomize(device_tensor& t, unsigned seed, float scale = 1) {
  fill_normal<<<1024, 256>>>(t.memory.data, t.type, t.elements(), seed, scale);
  CUDA_CHECK(cudaGetLastError());
}

/// Median milliseconds of `run`, enqueued on the default stream, by CUDA events. Short runs are enqueued several times
/// between two events, as a schedule enqueues its steps: the host's own time for a launch stays out.
inline double median_ms(int repeats, const std::function<void()>& run) {
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  const auto measure = [&](int inner) {
    float ms = 0;
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < inner; ++i) run();
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    return double(ms) / inner;
  };
  measure(2);
  const int inner = std::clamp(int(1 / measure(1)), 1, 20);
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(measure(inner));
  CUDA_CHECK(cudaEventDestroy(begin));
  CUDA_CHECK(cudaEventDestroy(end));
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace attnsim::kernels
