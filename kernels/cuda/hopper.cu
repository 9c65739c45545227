// The host side of the hopper path: tensor maps, tile counters, tile order.
#include "kernels/cuda/hopper.cuh"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

namespace attnsim::kernels::cuda {
namespace {

using encode_function = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                     const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                     const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                     CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

encode_function find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                         cudaEnableDefault, &found),
        "cuTensorMapEncodeTiled");
#else
  check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found),
        "cuTensorMapEncodeTiled");
#endif
  if (found != cudaDriverEntryPointSuccess)
    throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
  return reinterpret_cast<encode_function>(function);
}

constexpr int counters = 4096;
__device__ unsigned counter_memory[2 * counters];

constexpr int max_devices = 64;

}  // namespace

CUtensorMap tile_map(const void* data, const std::int64_t (&stride)[3], int batch, int tokens,
                     int heads, int head_dim, int rows, bool bf16) {
  static const encode_function encode = find_encode();
  const auto bytes = [](std::int64_t elements,
                        int extent) {  // the stride of a single entry is never used
    return static_cast<cuuint64_t>(extent == 1 ? 16 : elements * 2);
  };
  const cuuint64_t sizes[] = {cuuint64_t(head_dim), cuuint64_t(tokens), cuuint64_t(heads),
                              cuuint64_t(batch)};
  const cuuint64_t strides[] = {bytes(stride[1], tokens), bytes(stride[2], heads),
                                bytes(stride[0], batch)};
  const cuuint32_t box[] = {64, cuuint32_t(rows), 1, 1};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult result =
      encode(&map, bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4,
             const_cast<void*>(data), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) throw std::runtime_error("cuTensorMapEncodeTiled failed");
  return map;
}

unsigned* tile_counter() {
  static std::atomic<unsigned> next{0};
  static std::atomic<unsigned*> memory[max_devices];
  int device = 0;
  check(cudaGetDevice(&device), "device");
  unsigned* base = memory[device % max_devices].load();
  if (base == nullptr) {
    void* address = nullptr;
    check(cudaGetSymbolAddress(&address, counter_memory), "tile counters");
    base = static_cast<unsigned*>(address);
    memory[device % max_devices].store(base);
  }
  return base + 2 * (next++ % counters);
}

int multiprocessors() {
  static std::atomic<int> known[max_devices];
  int device = 0, count = 0;
  check(cudaGetDevice(&device), "device");
  count = known[device % max_devices].load();
  if (count == 0) {
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "device");
    known[device % max_devices].store(count);
  }
  return count;
}

tile_order order_tiles(int tiles, int heads, std::int64_t bytes_a_head, bool even_work) {
  constexpr std::int64_t cache = 24 << 20;
  if (even_work) return {tiles, heads, 1, tiles};
  const std::int64_t fits =
      std::clamp<std::int64_t>(cache / std::max<std::int64_t>(bytes_a_head, 1), 1, heads);
  // With work falling linearly, the last fraction f of the tiles is f^2 of the work: twice an average tile for every
  // multiprocessor, the longest there is.
  const double light =
      std::min(0.6, std::sqrt(2.0 * multiprocessors() / (static_cast<double>(tiles) * heads)));
  return {tiles, heads, static_cast<int>(fits), tiles - static_cast<int>(light * tiles)};
}

}  // namespace attnsim::kernels::cuda
