// Wrappers of the sm_90a instructions: mbarrier, bulk copies, wgmma, register reallocation. Tiles in shared memory are
// made of atoms of 64 elements (128 bytes) by rows, in the 128-byte swizzle: a TMA box of 64 x rows is one atom column.
// PTX ISA, "Asynchronous warpgroup level matrix instructions".
#pragma once

#include <cuda.h>

#include <type_traits>

#include "kernels/cuda/block.cuh"

namespace attnsim::kernels::cuda {

/// Tensor map of a (batch, tokens, heads, head_dim) view whose box is 64 of head_dim by `rows` tokens.
CUtensorMap tile_map(const void* data, const std::int64_t (&stride)[3], int batch, int tokens,
                     int heads, int head_dim, int rows, bool bf16);

/// A tile counter and a count of finished blocks, both 0, for one launch; the kernel zeroes them again. The same ones
/// come round after 4,096 launches.
unsigned* tile_counter();

/// Multiprocessors of the current device.
int multiprocessors();

/// Tiles in the order they are started; tile 0 of a head has the most work, its last one the least. Heads are taken in
/// sections of as many as fit in L2 together, the `heavy` longest tiles of every head of the section, longest first;
/// then the rest of all heads, so that the end is short tiles and no multiprocessor waits long for another.
struct tile_order {
  int tiles, heads;    // tiles of a head, heads over all batches
  int section, heavy;  // heads of a section, tiles of a head that belong to sections

  __device__ void decode(int index, int& tile, int& head) const {
    if (index >= heavy * heads) {
      tile = heavy + (index - heavy * heads) / heads;
      head = (index - heavy * heads) % heads;
      return;
    }
    const int first = index / (section * heavy) * section, rest = index - first * heavy;
    const int width = first + section < heads ? section : heads - first;
    tile = rest / width;
    head = first + rest % width;
  }
};
tile_order order_tiles(int tiles, int heads, std::int64_t bytes_a_head, bool even_work);

#if defined(__CUDACC__)

__device__ inline std::uint32_t shared_at(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// ---- mbarrier

using barrier = std::uint64_t;

__device__ inline void barrier_init(barrier* b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_at(b)), "r"(arrivals));
}
__device__ inline void barrier_expect(barrier* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_at(b)),
               "r"(bytes)
               : "memory");
}
__device__ inline void barrier_arrive(barrier* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_at(b)) : "memory");
}
__device__ inline void barrier_wait(barrier* b, int parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "wait:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra ready;\nbra "
      "wait;\nready:\n}" ::"r"(shared_at(b)),
      "r"(parity)
      : "memory");
}

/// A ring of Stages buffers: stage() and the parity its barriers are waited for with.
template <int Stages>
struct ring {
  int index = 0, parity = 0;
  __device__ void next() {
    if (++index == Stages) index = 0, parity ^= 1;
  }
};

__device__ inline void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int Registers>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

// ---- bulk copies

__device__ inline void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ inline void copy_tile(void* to, const CUtensorMap& map, barrier* b, int d, int token,
                                 int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5, %6}], [%2];" ::"r"(shared_at(to)),
      "l"(&map), "r"(shared_at(b)), "r"(d), "r"(token), "r"(head), "r"(batch)
      : "memory");
}
__device__ inline void add_to_global(float* to, float a, float b, float c, float d) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a),
               "f"(b), "f"(c), "f"(d)
               : "memory");
}

// ---- wgmma

/// Matrix descriptor, 128-byte swizzle. k-major tiles (rows along m or n, k within the 128 bytes): only the 1,024
/// bytes between groups of 8 rows matter; a k16 step is 32 bytes. m/n-major tiles (rows along k): a k16 step is 2,048
/// bytes and `next_atom` the distance to the next 64 of m or n.
__device__ inline std::uint64_t matrix(const void* tile, int next_atom = 16) {
  std::uint64_t d = std::uint64_t{1} << 62;
  d |= std::uint64_t{1024 >> 4} << 32;
  d |= static_cast<std::uint64_t>(next_atom >> 4) << 16;
  return d | ((shared_at(tile) & 0x3FFFF) >> 4);
}
constexpr std::uint64_t k_major_step = 32 >> 4, mn_major_step = 2048 >> 4;

__device__ inline void wgmma_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
/// Keeps the compiler from moving accesses of registers that wgmma uses across this point.
template <class T, int Count>
__device__ inline void pin(T (&x)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      asm volatile("" : "+f"(x[i])::"memory");
    } else {
      asm volatile("" : "+r"(x[i])::"memory");
    }
  }
}

/// d (64 x N) = or += A B; A, B by descriptor, or A in registers. TransA, TransB: tile is m- or n-major.
template <class T, int N>
struct wgmma;

#define ATTNSIM_F4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define ATTNSIM_F8(i) ATTNSIM_F4(i), ATTNSIM_F4((i) + 4)

#define ATTNSIM_WGMMA_TYPE(T, NAME, N, P0, P1, P2, P3, P4, P5)                                  \
  template <>                                                                                   \
  struct wgmma<T, N> {                                                                          \
    template <int TransA, int TransB>                                                           \
    __device__ static void run(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool add) { \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P2                                       \
                   ", 0;\n"                                                                     \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME              \
                   " {" ATTNSIM_D##N "}, " P0 ", " P1 ", p, 1, 1, " P3 ", " P4 ";\n}"           \
                   : ATTNSIM_F##N                                                               \
                   : "l"(a), "l"(b), "r"(int(add)), "n"(TransA), "n"(TransB));                  \
    }                                                                                           \
    template <int TransB>                                                                       \
    __device__ static void run(float (&d)[N / 2], const std::uint32_t* a, std::uint64_t b) {    \
      asm volatile(                                                                             \
          "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                                            \
          "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME " {" ATTNSIM_D##N     \
          "}, {" P0 ", " P1 ", " P2 ", " P3 "}, " P4 ", p, 1, 1, " P5 ";\n}"                    \
          : ATTNSIM_F##N                                                                        \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TransB));                   \
    }                                                                                           \
  };
#define ATTNSIM_WGMMA(N, ...)                               \
  ATTNSIM_WGMMA_TYPE(__nv_bfloat16, "bf16", N, __VA_ARGS__) \
  ATTNSIM_WGMMA_TYPE(__half, "f16", N, __VA_ARGS__)

// clang-format off
#define ATTNSIM_D64 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ATTNSIM_F64 ATTNSIM_F8(0), ATTNSIM_F8(8), ATTNSIM_F8(16), ATTNSIM_F8(24)
ATTNSIM_WGMMA(64, "%32", "%33", "%34", "%35", "%36", "%37")

#define ATTNSIM_D128 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, " \
  "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
  "%62, %63"
#define ATTNSIM_F128 ATTNSIM_F8(0), ATTNSIM_F8(8), ATTNSIM_F8(16), ATTNSIM_F8(24), ATTNSIM_F8(32), ATTNSIM_F8(40), \
  ATTNSIM_F8(48), ATTNSIM_F8(56)
ATTNSIM_WGMMA(128, "%64", "%65", "%66", "%67", "%68", "%69")

#define ATTNSIM_D160 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, " \
  "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
  "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define ATTNSIM_F160 ATTNSIM_F8(0), ATTNSIM_F8(8), ATTNSIM_F8(16), ATTNSIM_F8(24), ATTNSIM_F8(32), ATTNSIM_F8(40), \
  ATTNSIM_F8(48), ATTNSIM_F8(56), ATTNSIM_F8(64), ATTNSIM_F8(72)
ATTNSIM_WGMMA(160, "%80", "%81", "%82", "%83", "%84", "%85")
// clang-format on
#undef ATTNSIM_WGMMA
#undef ATTNSIM_WGMMA_TYPE

#endif

}  // namespace attnsim::kernels::cuda
