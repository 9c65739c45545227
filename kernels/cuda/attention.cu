// The host side of forward and backward: checks, parameters, choice of path.
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/cuda/arguments.cuh"
#include "model/error.hpp"

namespace attnsim::kernels::cuda {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

void require(bool condition, const std::string& what) {
  if (!condition) throw infeasible("attention on a GPU: " + what);
}

int compute_capability() {
  int device = 0, major = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "device");
  return major;
}

namespace {

bool is_aligned(const void* data, std::initializer_list<std::int64_t> strides, std::int64_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(data) % 16 != 0) return false;
  for (const std::int64_t stride : strides) {
    if (stride * bytes % 16 != 0) return false;
  }
  return true;
}

template <class T>
void require_aligned(const tensor_view<T>& view, element type, const char* name) {
  require(is_aligned(view.data, {view.batch_stride, view.token_stride, view.head_stride},
                     static_cast<std::int64_t>(size_of(type))),
          std::string(name) + ": address and strides must be multiples of 16 bytes");
}

int to_int(std::int64_t value, const char* name) {
  require(value >= 0 && value <= std::numeric_limits<int>::max() / 2,
          std::string(name) + " is out of range");
  return static_cast<int>(value);
}

void require_heads(const block_shape& s) {
  require(s.kv_heads > 0 && s.heads > 0 && s.heads % s.kv_heads == 0,
          "heads must be a multiple of kv_heads");
  require(s.batch <= 65535 && s.heads <= 65535, "batch and heads: at most 65535");
  require(s.scale >= 0, "scale must be positive");
}

void require_shape(const block_shape& s) {
  require(s.head_dim == 64 || s.head_dim == 96 || s.head_dim == 128 || s.head_dim == 256,
          "head_dim " + std::to_string(s.head_dim) + ": expected 64, 96, 128 or 256");
  require(s.value_dim() == s.head_dim,
          "values of " + std::to_string(s.value_dim()) + " elements a head beside keys of " +
              std::to_string(s.head_dim) + ": expected as many (kernel cpu takes any)");
  require_heads(s);
}

positions to_positions(const block_shape& s) {
  const block_mask& m = s.mask;
  if (!m.causal) return {0, 0, 1, 1, 0};
  require(m.query_stride > 0 && m.key_stride > 0 && m.window >= 0,
          "mask: strides must be positive");
  const std::int64_t first = m.query_first - m.key_first;
  const std::int64_t limit = std::numeric_limits<int>::max() / 2;
  require(first > -limit && first + (s.rows + 512) * m.query_stride < limit &&
              (s.cols + 512) * m.key_stride < limit && m.window < limit,
          "mask: positions must fit in 30 bits");
  return {1, static_cast<int>(first), static_cast<int>(m.query_stride),
          static_cast<int>(m.key_stride), static_cast<int>(m.window)};
}

float to_scale(const block_shape& s) {
  return s.scale > 0 ? s.scale : 1.f / std::sqrt(static_cast<float>(s.head_dim));
}

template <class T>
void strides(std::int64_t (&to)[3], const tensor_view<T>& view) {
  to[0] = view.batch_stride;
  to[1] = view.token_stride;
  to[2] = view.head_stride;
}

bool takes_hopper(const block_shape& shape, path which) {
  if (which == path::generic) return false;
  const bool available = hopper_available(shape);
  require(which == path::automatic || available,
          "the hopper path needs compute capability 9.0 and head_dim 64 or 128");
  return available;
}

std::int64_t padded(std::int64_t rows) {
  return (rows + row_padding - 1) / row_padding * row_padding;
}

std::size_t statistics_bytes(const block_shape& s) {
  const std::size_t bytes =
      static_cast<std::size_t>(s.batch * s.heads * padded(s.rows)) * sizeof(float);
  return (bytes + 255) / 256 * 256;
}

}  // namespace

bool hopper_available(const block_shape& shape) {
  return (shape.head_dim == 64 || shape.head_dim == 128) && compute_capability() == 9;
}

forward_parameters parameters_of(const forward_arguments& a) {
  const block_shape& s = a.shape;
  require_heads(s);
  require(a.type != element::fp32, "q, k, v: expected bf16 or fp16");
  require(a.output == a.type || a.output == element::fp32, "o: expected the inputs' type or fp32");
  forward_parameters p{};
  p.batch = to_int(s.batch, "batch"), p.rows = to_int(s.rows, "rows");
  if (s.rows == 0 || s.batch == 0) return p;
  require_aligned(a.q, a.type, "q");
  require_aligned(a.k, a.type, "k");
  require_aligned(a.v, a.type, "v");
  require_aligned(a.o, a.output, "o");

  p.q = a.q.data, p.k = a.k.data, p.v = a.v.data, p.o = a.o.data, p.l = a.l.data;
  strides(p.q_stride, a.q), strides(p.k_stride, a.k), strides(p.v_stride, a.v);
  strides(p.o_stride, a.o), strides(p.l_stride, a.l);
  p.heads = to_int(s.heads, "heads"), p.kv_heads = to_int(s.kv_heads, "kv_heads");
  p.cols = to_int(s.cols, "cols");
  p.fp32_output = a.output == element::fp32;
  p.scale = to_scale(s);
  p.mask = to_positions(s);
  return p;
}

void forward(const forward_arguments& a, stream queue, path which) {
  const block_shape& s = a.shape;
  require_shape(s);
  const auto p = parameters_of(a);
  if (p.rows == 0 || p.batch == 0) return;
  const bool hopper = s.cols > 0 && takes_hopper(s, which);
  const auto run = a.type == element::bf16
                       ? (hopper ? hopper_forward<__nv_bfloat16> : generic_forward<__nv_bfloat16>)
                       : (hopper ? hopper_forward<__half> : generic_forward<__half>);
  run(p, static_cast<int>(s.head_dim), queue);
}

std::size_t backward_workspace(const block_shape& s) {
  return 2 * statistics_bytes(s) +
         static_cast<std::size_t>(s.batch * s.heads * padded(s.rows) * s.head_dim) * sizeof(float);
}

void backward(const backward_arguments& a, void* workspace, stream queue, path which) {
  const block_shape& s = a.shape;
  require_shape(s);
  require(a.type != element::fp32, "q, k, v, d_o: expected bf16 or fp16");
  require(a.gradient == a.type || a.gradient == element::fp32,
          "gradients: expected the inputs' type or fp32");
  require_aligned(a.q, a.type, "q");
  require_aligned(a.k, a.type, "k");
  require_aligned(a.v, a.type, "v");
  require_aligned(a.d_o, a.type, "d_o");
  require(a.delta.data != nullptr || a.o.data != nullptr, "backward: expected delta or o");
  if (a.delta.data == nullptr) require_aligned(a.o, a.type, "o");
  require_aligned(a.d_q, a.gradient, "d_q");
  require_aligned(a.d_k, a.gradient, "d_k");
  require_aligned(a.d_v, a.gradient, "d_v");

  if (s.batch == 0) return;
  if (s.rows == 0 || s.cols == 0) {  // nothing seen: no gradient
    if (s.rows > 0) clear({s.batch, s.rows, s.heads, s.head_dim}, {a.gradient, a.d_q}, {}, queue);
    if (s.cols > 0)
      clear({s.batch, s.cols, s.kv_heads, s.head_dim}, {a.gradient, a.d_k}, {}, queue);
    if (s.cols > 0)
      clear({s.batch, s.cols, s.kv_heads, s.head_dim}, {a.gradient, a.d_v}, {}, queue);
    return;
  }

  const int padded_rows = to_int(padded(s.rows), "rows");
  auto* const l = static_cast<float*>(workspace);
  float* const delta = l + statistics_bytes(s) / sizeof(float);
  float* const d_q = delta + statistics_bytes(s) / sizeof(float);

  backward_parameters p{};
  p.q = a.q.data, p.k = a.k.data, p.v = a.v.data, p.d_o = a.d_o.data, p.d_k = a.d_k.data,
  p.d_v = a.d_v.data;
  p.l = l, p.delta = delta, p.d_q = d_q;
  strides(p.q_stride, a.q), strides(p.k_stride, a.k), strides(p.v_stride, a.v),
      strides(p.d_o_stride, a.d_o);
  strides(p.d_k_stride, a.d_k), strides(p.d_v_stride, a.d_v);
  p.batch = to_int(s.batch, "batch"), p.heads = to_int(s.heads, "heads"),
  p.kv_heads = to_int(s.kv_heads, "kv_heads");
  p.rows = to_int(s.rows, "rows"), p.cols = to_int(s.cols, "cols"), p.padded_rows = padded_rows;
  p.fp32_gradient = a.gradient == element::fp32;
  p.scale = to_scale(s);
  p.mask = to_positions(s);

  const bool hopper = takes_hopper(s, which);
  const auto run = a.type == element::bf16
                       ? (hopper ? hopper_backward<__nv_bfloat16> : generic_backward<__nv_bfloat16>)
                       : (hopper ? hopper_backward<__half> : generic_backward<__half>);
  backward_prologue(a, l, delta, d_q, padded_rows, queue);
  run(p, static_cast<int>(s.head_dim), queue);
  backward_epilogue(a, d_q, p.scale, padded_rows, hopper, queue);
}

}  // namespace attnsim::kernels::cuda
