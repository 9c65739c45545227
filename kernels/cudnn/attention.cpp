#include "kernels/cudnn/attention.hpp"

#include <cuda_runtime_api.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "kernels/cudnn/operation_graph.hpp"

namespace attnsim::kernels::cudnn {
namespace {

enum id : std::int64_t {
  q_id = 1,
  k_id,
  v_id,
  o_id,
  l_id,
  do_id,
  dq_id,
  dk_id,
  dv_id,
  dq_sum_id,
  delta_id,
  scale_id,
  hidden_id,
  one_id,
  shift_id,
  rows_id,
  cols_id
};

/// How a mask of one stride is spelled: j <= i + offset on the rows from `skipped` on.
struct diagonal {
  bool causal = false;
  std::int64_t offset = 0, skipped = 0;
};

diagonal diagonal_of(const block_shape& s) {
  if (!s.mask.causal) return {};
  const std::int64_t ahead = s.mask.query_first - s.mask.key_first, stride = s.mask.query_stride;
  const std::int64_t offset = ahead / stride - (ahead % stride < 0);
  if (offset >= s.cols - 1) return {};
  if (offset < 0) return {true, 0, std::min(-offset, s.rows)};
  return {true, offset, 0};
}

cudnnDataType_t type_of(element type) {
  return type == element::bf16   ? CUDNN_DATA_BFLOAT16
         : type == element::fp16 ? CUDNN_DATA_HALF
                                 : CUDNN_DATA_FLOAT;
}

float scale_of(const block_shape& s) {
  return s.scale > 0 ? s.scale : 1.f / std::sqrt(static_cast<float>(s.head_dim));
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

template <class T>
extents4 strides_of(const tensor_view<T>& view) {
  return {view.batch_stride, view.head_stride, view.token_stride, 1};
}
extents4 turned(extents4 x) {
  return {x[0], x[1], x[3], x[2]};
}

template <class T>
tensor_view<T> from_row(tensor_view<T> view, std::int64_t row, std::size_t bytes) {
  using byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  view.data = reinterpret_cast<T*>(reinterpret_cast<byte*>(view.data) +
                                   row * view.token_stride * static_cast<std::int64_t>(bytes));
  return view;
}

tensor_view<void> packed(void* data, std::int64_t tokens, std::int64_t heads, std::int64_t dim) {
  return {data, heads * tokens * dim, dim, tokens * dim};
}
template <class T>
bool is_packed_statistic(const tensor_view<T>& view, std::int64_t tokens, std::int64_t heads) {
  return view.token_stride == 1 && (view.head_stride == tokens || heads == 1) &&
         view.batch_stride == heads * tokens;
}

/// The masked scores, as the pattern matcher wants them spelled.
node masked(operation_graph& g, const node& scores, const diagonal& d, std::int64_t rows,
            std::int64_t cols) {
  if (!d.causal) return scores;
  node row = g.index_along(2, scores);
  const node col = g.index_along(3, scores);
  const auto shifted = [&](cudnnPointwiseMode_t mode, std::int64_t by) {
    return g.pointwise(mode, row, g.scalar(by, CUDNN_DATA_INT32),
                       g.temporary(scores.sizes, CUDNN_DATA_INT32), CUDNN_DATA_INT32);
  };
  if (d.offset > 0 && d.offset == cols - rows) {
    row = shifted(CUDNN_POINTWISE_ADD, cols_id);
    row = shifted(CUDNN_POINTWISE_SUB, rows_id);
  } else if (d.offset > 0) {
    row = shifted(CUDNN_POINTWISE_ADD, shift_id);
  }
  const node seen = g.pointwise(CUDNN_POINTWISE_CMP_GE, row, col,
                                g.temporary(scores.sizes, CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
  return g.select(seen, scores, g.scalar(hidden_id, CUDNN_DATA_FLOAT), g.temporary(scores.sizes));
}

struct sizes {
  std::int64_t b, h, hk, m, n, d;
};

operation_graph forward_graph(const forward_arguments& a, const sizes& z, const diagonal& diag) {
  const cudnnDataType_t io = type_of(a.type);
  const extents4 row{z.b, z.h, z.m, 1}, square{z.b, z.h, z.m, z.n};
  operation_graph g;
  const node q = g.memory(q_id, {z.b, z.h, z.m, z.d}, strides_of(a.q), io);
  const node kt = g.memory(k_id, {z.b, z.hk, z.d, z.n}, turned(strides_of(a.k)), io);
  const node v = g.memory(v_id, {z.b, z.hk, z.n, z.d}, strides_of(a.v), io);
  const node o = g.memory(o_id, {z.b, z.h, z.m, z.d}, strides_of(a.o), io);
  const node l = g.memory(l_id, row, {z.h * z.m, z.m, 1, 1}, CUDNN_DATA_FLOAT);

  node s = g.matmul(q, kt, g.temporary(square));
  s = g.pointwise(CUDNN_POINTWISE_MUL, s, g.scalar(scale_id, CUDNN_DATA_FLOAT),
                  g.temporary(square));
  s = masked(g, s, diag, z.m, z.n);
  const node high = g.reduce(CUDNN_REDUCE_TENSOR_MAX, s, g.temporary(row));
  const node shifted = g.pointwise(CUDNN_POINTWISE_SUB, s, high, g.temporary(square));
  const node e = g.pointwise(CUDNN_POINTWISE_EXP, shifted, g.temporary(square));
  const node sum = g.reduce(CUDNN_REDUCE_TENSOR_ADD, e, g.temporary(row));
  const node log = g.pointwise(CUDNN_POINTWISE_LOG, sum, g.temporary(row));
  g.pointwise(CUDNN_POINTWISE_ADD, high, log, l);
  const node p = g.pointwise(CUDNN_POINTWISE_DIV, e, sum, g.temporary(square, io));
  g.matmul(p, v, o);
  return g;
}

operation_graph backward_graph(const backward_arguments& a, const sizes& z, const diagonal& diag,
                               cudnnDataType_t k_type) {
  const cudnnDataType_t io = type_of(a.type);
  const extents4 row{z.b, z.h, z.m, 1}, square{z.b, z.h, z.m, z.n}, q_size{z.b, z.h, z.m, z.d},
      k_size{z.b, z.hk, z.n, z.d};
  const extents4 row_strides{z.h * z.m, z.m, 1, 1};
  operation_graph g;
  const node q = g.memory(q_id, q_size, strides_of(a.q), io);
  const node kt = g.memory(k_id, turned(k_size), turned(strides_of(a.k)), io);
  const node vt = g.memory(v_id, turned(k_size), turned(strides_of(a.v)), io);
  const node o = g.memory(o_id, q_size, strides_of(a.o), io);
  const node d_o = g.memory(do_id, q_size, strides_of(a.d_o), io);
  const node l = g.memory(l_id, row, row_strides, CUDNN_DATA_FLOAT);
  const node dq = g.memory(dq_id, q_size, strides_of(a.d_q), io);
  const node dk = g.memory(dk_id, k_size, strides_of(a.d_k), io);
  const node dv = g.memory(dv_id, k_size, strides_of(a.d_v), io);
  const node dq_sum =
      g.memory(dq_sum_id, q_size, {z.h * z.m * z.d, z.m * z.d, z.d, 1}, CUDNN_DATA_FLOAT);
  const node delta = g.memory(delta_id, row, row_strides, CUDNN_DATA_FLOAT);
  const node scale = g.scalar(scale_id, CUDNN_DATA_FLOAT);

  node x = g.pointwise(
      CUDNN_POINTWISE_MUL, d_o, o,
      g.temporary(q_size, {z.h * z.m * z.d, z.m * z.d, z.h * z.d, 1}, CUDNN_DATA_FLOAT));
  x = g.reduce(CUDNN_REDUCE_TENSOR_ADD, x, g.temporary(row));
  g.pointwise(CUDNN_POINTWISE_MUL, x, g.scalar(one_id, CUDNN_DATA_FLOAT), delta);

  node s = g.matmul(q, kt, g.temporary(square));
  s = g.pointwise(CUDNN_POINTWISE_MUL, s, scale, g.temporary(square));
  s = g.pointwise(CUDNN_POINTWISE_SUB, s, l, g.temporary(square));
  s = masked(g, s, diag, z.m, z.n);
  const node p = g.pointwise(CUDNN_POINTWISE_EXP, s, g.temporary(square));

  const extents4 turned_square{z.b, z.h, z.n, z.m},
      turned_strides{z.h * z.m * z.n, z.m * z.n, 1, z.n};
  const auto to_key_heads = [&](const node& left, const node& right, const node& to) {
    if (z.h == z.hk) {
      g.matmul(left, right, to);
    } else {
      g.reduce(CUDNN_REDUCE_TENSOR_ADD,
               g.matmul(left, right, g.temporary({z.b, z.h, z.n, z.d}, io)), to);
    }
  };
  to_key_heads(g.reshape(p, g.temporary(turned_square, turned_strides, io)), d_o, dv);

  node ds = g.matmul(d_o, vt, g.temporary(square));
  ds = g.pointwise(CUDNN_POINTWISE_SUB, ds, delta, g.temporary(square));
  ds = g.pointwise(CUDNN_POINTWISE_MUL, ds, p, g.temporary(square));
  ds = g.pointwise(CUDNN_POINTWISE_MUL, ds, scale, g.temporary(square, CUDNN_DATA_FLOAT));
  to_key_heads(g.reshape(ds, g.temporary(turned_square, turned_strides, io)), q, dk);

  const node k = g.reshape(kt, g.temporary(k_size, strides_of(a.k), k_type));
  g.matmul(ds, k, dq_sum);
  g.pointwise(CUDNN_POINTWISE_IDENTITY, dq_sum, dq);
  return g;
}

/// cuDNN's handle of a device and the plans made with it.
struct device_state {
  cudnnHandle_t handle = nullptr;
  std::map<std::vector<std::int64_t>, std::unique_ptr<execution_plan>> plans;
};

std::mutex guard;  // cuDNN handles are not to be used by two threads at once

device_state& state() {
  static std::map<int, device_state> devices;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) throw std::runtime_error("cuDNN: no CUDA device");
  device_state& s = devices[device];
  if (s.handle == nullptr) check(cudnnCreate(&s.handle), "create");
  return s;
}

template <class... Views>
std::vector<std::int64_t> key_of(int kind, element type, const sizes& z, const diagonal& d,
                                 const Views&... views) {
  std::vector<std::int64_t> key{
      kind, static_cast<int>(type), z.b, z.h, z.hk, z.m, z.n, z.d, d.causal, d.offset};
  (key.insert(key.end(), {views.batch_stride, views.token_stride, views.head_stride}), ...);
  return key;
}

void require_supported(const block_shape& shape) {
  if (!supported(shape))
    throw infeasible("cuDNN: this mask has two strides or a window; the cuda back end computes it");
}

struct bump {
  char* base;
  std::size_t used = 0;
  void* take(std::size_t bytes) {
    void* result = base + used;
    used += round_up(bytes);
    return result;
  }
};

/// The forward pass as cuDNN runs it: rows that see nothing cut off, outputs it cannot write staged in the workspace.
struct forward_call {
  forward_arguments a;
  sizes z;
  diagonal diag;
  bool stage_o = false, stage_l = false;
  void *plan_workspace = nullptr, *l = nullptr;
  std::size_t bytes = 0;
  const execution_plan* plan = nullptr;

  forward_call(const forward_arguments& arguments, void* workspace, device_state& device)
      : a(arguments) {
    require_supported(a.shape);
    diag = diagonal_of(a.shape);
    z = {a.shape.batch, a.shape.heads,   a.shape.kv_heads, a.shape.rows - diag.skipped,
         a.shape.cols,  a.shape.head_dim};
    a.q = from_row(a.q, diag.skipped, 2);
    a.o = from_row(a.o, diag.skipped, size_of(a.output));
    a.l = from_row(a.l, diag.skipped, 4);
    if (z.m == 0) return;
    bump memory{static_cast<char*>(workspace)};
    stage_o = a.output != a.type;
    stage_l = !is_packed_statistic(a.l, z.m, z.h);
    if (stage_o) a.o = packed(memory.take(z.b * z.h * z.m * z.d * 2), z.m, z.h, z.d);
    l = stage_l ? memory.take(z.b * z.h * z.m * 4) : a.l.data;
    auto& found = device.plans[key_of(0, a.type, z, diag, a.q, a.k, a.v, a.o)];
    if (!found) found = std::make_unique<execution_plan>(device.handle, forward_graph(a, z, diag));
    plan = found.get();
    plan_workspace = memory.take(plan->workspace());
    bytes = memory.used;
  }
};

struct backward_call {
  backward_arguments a;
  sizes z;
  diagonal diag;
  bool stage = false, stage_l = false;
  void *plan_workspace = nullptr, *l = nullptr, *dq_sum = nullptr, *delta = nullptr;
  std::size_t bytes = 0;
  const execution_plan* plan = nullptr;

  backward_call(const backward_arguments& arguments, void* workspace, device_state& device)
      : a(arguments) {
    require_supported(a.shape);
    diag = diagonal_of(a.shape);
    z = {a.shape.batch, a.shape.heads,   a.shape.kv_heads, a.shape.rows - diag.skipped,
         a.shape.cols,  a.shape.head_dim};
    a.q = from_row(a.q, diag.skipped, 2);
    a.o = from_row(a.o, diag.skipped, 2);
    a.d_o = from_row(a.d_o, diag.skipped, 2);
    a.l = from_row(a.l, diag.skipped, 4);
    a.d_q = from_row(a.d_q, diag.skipped, size_of(a.gradient));
    if (z.m == 0) return;
    bump memory{static_cast<char*>(workspace)};
    stage = a.gradient != a.type;
    stage_l = !is_packed_statistic(a.l, z.m, z.h);
    if (stage) {
      a.d_q = packed(memory.take(z.b * z.h * z.m * z.d * 2), z.m, z.h, z.d);
      a.d_k = packed(memory.take(z.b * z.hk * z.n * z.d * 2), z.n, z.hk, z.d);
      a.d_v = packed(memory.take(z.b * z.hk * z.n * z.d * 2), z.n, z.hk, z.d);
    }
    l = stage_l ? memory.take(z.b * z.h * z.m * 4) : const_cast<float*>(a.l.data);
    dq_sum = memory.take(z.b * z.h * z.m * z.d * 4);
    delta = memory.take(z.b * z.h * z.m * 4);
    auto& found =
        device.plans[key_of(1, a.type, z, diag, a.q, a.k, a.v, a.o, a.d_o, a.d_q, a.d_k, a.d_v)];
    if (!found) {
      try {  // releases differ in the type they expect of the reshaped K
        found = std::make_unique<execution_plan>(device.handle,
                                                 backward_graph(a, z, diag, CUDNN_DATA_FLOAT));
      } catch (const infeasible&) {
        found = std::make_unique<execution_plan>(device.handle,
                                                 backward_graph(a, z, diag, type_of(a.type)));
      }
    }
    plan = found.get();
    plan_workspace = memory.take(plan->workspace());
    bytes = memory.used;
  }
};

/// The scalars of a graph, by id.
struct scalars {
  float scale, hidden = -std::numeric_limits<float>::infinity(), one = 1;
  std::int32_t shift, rows, cols;

  void add(std::vector<std::int64_t>& ids, std::vector<void*>& at, const diagonal& d,
           std::int64_t m, std::int64_t n, bool with_one) {
    const auto put = [&](std::int64_t name, void* where) {
      ids.push_back(name), at.push_back(where);
    };
    put(scale_id, &scale);
    if (with_one) put(one_id, &one);
    if (!d.causal) return;
    put(hidden_id, &hidden);
    if (d.offset > 0 && d.offset == n - m) {
      put(cols_id, &cols), put(rows_id, &rows);
    } else if (d.offset > 0) {
      put(shift_id, &shift);
    }
  }
  scalars(float scale_value, const diagonal& d, const sizes& z)
      : scale(scale_value),
        shift(static_cast<std::int32_t>(d.offset)),
        rows(static_cast<std::int32_t>(z.m)),
        cols(static_cast<std::int32_t>(z.n)) {}
};

template <class T>
void* address(const tensor_view<T>& view) {
  return const_cast<void*>(static_cast<const void*>(view.data));
}
template <class T>
cuda::tensor as_tensor(element type, const tensor_view<T>& view) {
  return {type, {address(view), view.batch_stride, view.token_stride, view.head_stride}};
}

}  // namespace

bool supported(const block_shape& shape) {
  const block_mask& m = shape.mask;
  if (shape.value_dim() != shape.head_dim) return false;
  return !m.causal || (m.query_stride == m.key_stride && m.window == 0);
}

std::size_t version() {
  return cudnnGetVersion();
}

std::size_t forward_workspace(const forward_arguments& arguments) {
  const std::lock_guard lock(guard);
  return forward_call(arguments, nullptr, state()).bytes;
}

std::size_t backward_workspace(const backward_arguments& arguments) {
  const std::lock_guard lock(guard);
  return backward_call(arguments, nullptr, state()).bytes;
}

void forward(const forward_arguments& arguments, void* workspace, stream queue) {
  const std::lock_guard lock(guard);
  device_state& device = state();
  const forward_call call(arguments, workspace, device);
  const sizes& z = call.z;
  if (call.diag.skipped > 0) {
    cuda::clear({z.b, call.diag.skipped, z.h, z.d}, as_tensor(arguments.output, arguments.o),
                arguments.l, queue);
  }
  if (z.m == 0) return;
  scalars values(scale_of(arguments.shape), call.diag, z);
  std::vector<std::int64_t> ids{q_id, k_id, v_id, o_id, l_id};
  std::vector<void*> at{address(call.a.q), address(call.a.k), address(call.a.v), address(call.a.o),
                        call.l};
  values.add(ids, at, call.diag, z.m, z.n, false);
  check(cudnnSetStream(device.handle, queue), "stream");
  call.plan->run(device.handle, ids, at, call.plan_workspace);
  if (call.stage_o) {
    cuda::copy({z.b, z.m, z.h, z.d},
               as_tensor(arguments.output,
                         from_row(arguments.o, call.diag.skipped, size_of(arguments.output))),
               as_tensor(call.a.type, call.a.o), queue);
  }
  if (call.stage_l) {
    cuda::copy({z.b, z.m, z.h, 1}, as_tensor(element::fp32, call.a.l),
               {element::fp32, packed(call.l, z.m, z.h, 1)}, queue);
  }
}

void backward(const backward_arguments& arguments, void* workspace, stream queue) {
  const std::lock_guard lock(guard);
  device_state& device = state();
  const backward_call call(arguments, workspace, device);
  const sizes& z = call.z;
  if (call.diag.skipped > 0) {
    cuda::clear({z.b, call.diag.skipped, z.h, z.d}, as_tensor(arguments.gradient, arguments.d_q),
                {}, queue);
  }
  if (z.m == 0) {
    cuda::clear({z.b, z.n, z.hk, z.d}, as_tensor(arguments.gradient, arguments.d_k), {}, queue);
    cuda::clear({z.b, z.n, z.hk, z.d}, as_tensor(arguments.gradient, arguments.d_v), {}, queue);
    return;
  }
  if (call.stage_l) {
    cuda::copy({z.b, z.m, z.h, 1}, {element::fp32, packed(call.l, z.m, z.h, 1)},
               as_tensor(element::fp32, call.a.l), queue);
  }
  scalars values(scale_of(arguments.shape), call.diag, z);
  std::vector<std::int64_t> ids{q_id,  k_id,  v_id,  o_id,      do_id,   l_id,
                                dq_id, dk_id, dv_id, dq_sum_id, delta_id};
  std::vector<void*> at{address(call.a.q),   address(call.a.k),   address(call.a.v),
                        address(call.a.o),   address(call.a.d_o), call.l,
                        address(call.a.d_q), address(call.a.d_k), address(call.a.d_v),
                        call.dq_sum,         call.delta};
  values.add(ids, at, call.diag, z.m, z.n, true);
  check(cudnnSetStream(device.handle, queue), "stream");
  call.plan->run(device.handle, ids, at, call.plan_workspace);
  if (call.stage) {
    cuda::copy({z.b, z.m, z.h, z.d},
               as_tensor(arguments.gradient,
                         from_row(arguments.d_q, call.diag.skipped, size_of(arguments.gradient))),
               as_tensor(call.a.type, call.a.d_q), queue);
    cuda::copy({z.b, z.n, z.hk, z.d}, as_tensor(arguments.gradient, arguments.d_k),
               as_tensor(call.a.type, call.a.d_k), queue);
    cuda::copy({z.b, z.n, z.hk, z.d}, as_tensor(arguments.gradient, arguments.d_v),
               as_tensor(call.a.type, call.a.d_v), queue);
  }
}

}  // namespace attnsim::kernels::cudnn
