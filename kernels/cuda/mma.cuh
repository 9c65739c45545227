// Wrappers of the sm_80 instructions: cp.async, ldmatrix, mma.sync m16n8k16. The eight rows that a phase of ldmatrix reads of a tile
// in shared memory lie in different banks: rows are D + 8 elements apart, or their 16 bytes are in another order (swizzled).
#pragma once

#include "kernels/cuda/block.cuh"

namespace attnsim::kernels::cuda {

template <class T>
__device__ inline std::uint32_t shared_address(const T* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ inline void copy_16(void* to, const void* from, bool valid) {  // zeros where not valid
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(static_cast<char*>(to))),
      "l"(from), "r"(valid ? 16 : 0));
}
__device__ inline void copy_commit() {
  asm volatile("cp.async.commit_group;");
}
template <int Pending>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

/// A tile of rows of D elements without gaps: the 16 bytes that would be number c of row r are number c ^ r % 8. cp.async asks twice for
/// 32 bytes that would not lie in 32 of shared memory, as in every other row of D + 8 elements: 1.5 times as much from the cache.
template <int D>
struct swizzled {
  static_assert(D % 64 == 0);
};

/// Where an element whose column is a multiple of 8 lies in a tile: rows `stride` elements apart, or swizzled.
__device__ inline int place(int stride, int row, int column) {
  return row * stride + column;
}
template <int D>
__device__ inline int place(swizzled<D>, int row, int column) {
  return row * D + (column ^ row % 8 * 8);
}

template <class T, int D, int Rows, int Threads>
__device__ inline void load_tile(T* to, const T* from, std::int64_t stride, int first, int limit) {
  constexpr int chunks = D / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < Rows * chunks; i += Threads) {
    const int row = i / chunks, chunk = i % chunks;
    const bool valid = first + row < limit;
    copy_16(to + row * (D + 8) + chunk * 8, from + (valid ? first + row : 0) * stride + chunk * 8,
            valid);
  }
}

__device__ inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// Fragments by where they lie in shared memory; `rows`: their stride in elements, or swizzled. A is 16 x 16, B is 16 x 16 (two n8
// tiles: registers 0, 1 and 2, 3).
template <class T, class Rows>
__device__ inline void a_from_m_k(std::uint32_t (&a)[4], const T* tile, Rows rows, int m, int k) {
  const int lane = threadIdx.x % 32;
  load_matrices(a, shared_address(tile + place(rows, m + lane % 16, k + lane / 16 * 8)));
}
template <class T, class Rows>
__device__ inline void a_from_k_m(std::uint32_t (&a)[4], const T* tile, Rows rows, int m, int k) {
  const int lane = threadIdx.x % 32;
  load_matrices_transposed(
      a, shared_address(tile + place(rows, k + lane % 8 + lane / 16 * 8, m + lane / 8 % 2 * 8)));
}
template <class T, class Rows>
__device__ inline void b_from_n_k(std::uint32_t (&b)[4], const T* tile, Rows rows, int n, int k) {
  const int lane = threadIdx.x % 32;
  load_matrices(
      b, shared_address(tile + place(rows, n + lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * 8)));
}
template <class T, class Rows>
__device__ inline void b_from_k_n(std::uint32_t (&b)[4], const T* tile, Rows rows, int n, int k) {
  const int lane = threadIdx.x % 32;
  load_matrices_transposed(b, shared_address(tile + place(rows, k + lane % 16, n + lane / 16 * 8)));
}

template <class T>
__device__ inline void mma(float* d, const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1);
template <>
__device__ inline void mma<__nv_bfloat16>(float* d, const std::uint32_t (&a)[4], std::uint32_t b0,
                                          std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ inline void mma<__half>(float* d, const std::uint32_t (&a)[4], std::uint32_t b0,
                                   std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two neighbouring n8 accumulator tiles as a k16 A fragment: D's layout is A's.
template <class T>
__device__ inline void a_from_accumulator(std::uint32_t (&a)[4], const float* d) {
  a[0] = pack<T>(d[0], d[1]);
  a[1] = pack<T>(d[2], d[3]);
  a[2] = pack<T>(d[4], d[5]);
  a[3] = pack<T>(d[6], d[7]);
}

/// o += weights x values, of Bands of 16 rows, Keys and Columns that begin at `column`; values lie as keys by columns in shared memory.
/// weights(a, r, n) makes the A fragment of band r and of 16 keys from n on.
template <class T, int Bands, int Keys, int Columns, class Weights, class Rows>
__device__ inline void add_values(float (&o)[Bands][Columns / 2], const Weights& weights,
                                  const T* values, Rows rows, int column = 0) {
#pragma unroll
  for (int n = 0; n < Keys; n += 16) {
    std::uint32_t a[Bands][4], b[4];
#pragma unroll
    for (int r = 0; r < Bands; ++r) weights(a[r], r, n);
#pragma unroll
    for (int d = 0; d < Columns; d += 16) {
      b_from_k_n(b, values, rows, column + d, n);
#pragma unroll
      for (int r = 0; r < Bands; ++r) {
        mma<T>(o[r] + d / 2, a[r], b[0], b[1]);
        mma<T>(o[r] + d / 2 + 4, a[r], b[2], b[3]);
      }
    }
  }
}

}  // namespace attnsim::kernels::cuda
