// Checks every GPU kernel against plain fp64 kernels, which a CPU loop checks first: merge, row_dot, accumulate, copy
// and the token orders, then forward and backward of both paths and of cuDNN, and forward of few rows, on fixed and random shapes,
// masks, groupings, strides and types. Inputs are fresh random numbers, outputs are poisoned with NaN before each run.
//
//   attention_check [--cases N] [--seed N] [--quick] [--own] [--only generic|hopper|cudnn|decode]   exit 1 if anything fails
#include <cstring>

#include "kernels/cuda/decode.hpp"
#include "model/error.hpp"
#include "tests/gpu/gpu_block.cuh"

namespace attnsim::kernels {
namespace {

using cuda::element;

// ---- the reference: one thread an output element, all in fp64, packed (batch, head, row, ...)

struct reference_input {
  const void *q, *k, *v, *d_o;
  std::int64_t qs[3], ks[3], vs[3], ds[3];
  element type;
  int batch, heads, kv_heads, rows, cols, dim;
  double scale;
  block_mask mask;
  int value_dim = 0;  // 0: as dim

  __host__ __device__ int values() const { return value_dim > 0 ? value_dim : dim; }
  __host__ __device__ double value(const void* data, const std::int64_t (&s)[3], int b, int t,
                                   int h, int d) const {
    const std::int64_t i = b * s[0] + t * s[1] + h * s[2] + d;
    return type == element::bf16
               ? double(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]))
               : double(__half2float(static_cast<const __half*>(data)[i]));
  }
};

__device__ inline bool split(const reference_input& in, std::int64_t count_a_head, int heads,
                             std::int64_t& i, int& h, int& b) {
  i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  const bool inside = i < count_a_head * heads * in.batch;
  h = static_cast<int>(i / count_a_head % heads), b = static_cast<int>(i / count_a_head / heads),
  i %= count_a_head;
  return inside;
}

__global__ void reference_scores(reference_input in, double* s, double* dp) {
  std::int64_t e;
  int h, b;
  if (!split(in, std::int64_t{in.rows} * in.cols, in.heads, e, h, b)) return;
  const int i = static_cast<int>(e / in.cols), j = static_cast<int>(e % in.cols),
            g = h / (in.heads / in.kv_heads);
  double x = 0, y = 0;
  for (int d = 0; d < in.dim; ++d) {
    x += in.value(in.q, in.qs, b, i, h, d) * in.value(in.k, in.ks, b, j, g, d);
    if (dp != nullptr) y += in.value(in.d_o, in.ds, b, i, h, d) * in.value(in.v, in.vs, b, j, g, d);
  }
  const std::int64_t at = ((std::int64_t{b} * in.heads + h) * in.rows + i) * in.cols + j;
  const block_mask m = in.mask;
  const std::int64_t query = m.query_first + i * m.query_stride,
                     key = m.key_first + j * m.key_stride;
  const bool seen = !m.causal || (key <= query && (m.window == 0 || key > query - m.window));
  s[at] = seen ? x * in.scale : -INFINITY;
  if (dp != nullptr) dp[at] = y;
}

__global__ void reference_softmax(reference_input in, double* s, double* l) {  // s becomes P
  std::int64_t i;
  int h, b;
  if (!split(in, in.rows, in.heads, i, h, b)) return;
  const std::int64_t row = (std::int64_t{b} * in.heads + h) * in.rows + i;
  double* p = s + row * in.cols;
  double high = -INFINITY, sum = 0;
  for (int j = 0; j < in.cols; ++j) high = fmax(high, p[j]);
  for (int j = 0; j < in.cols; ++j) sum += high == -INFINITY ? 0 : exp(p[j] - high);
  l[row] = sum > 0 ? high + log(sum) : -INFINITY;
  for (int j = 0; j < in.cols; ++j) p[j] = sum > 0 ? exp(p[j] - l[row]) : 0;
}

__global__ void reference_output(reference_input in, const double* p, double* o) {
  std::int64_t e;
  int h, b;
  if (!split(in, std::int64_t{in.rows} * in.values(), in.heads, e, h, b)) return;
  const int i = static_cast<int>(e / in.values()), d = static_cast<int>(e % in.values()),
            g = h / (in.heads / in.kv_heads);
  const std::int64_t row = (std::int64_t{b} * in.heads + h) * in.rows + i;
  double x = 0;
  for (int j = 0; j < in.cols; ++j) x += p[row * in.cols + j] * in.value(in.v, in.vs, b, j, g, d);
  o[row * in.values() + d] = x;
}

__global__ void reference_delta(reference_input in, const double* o, double* delta) {
  std::int64_t i;
  int h, b;
  if (!split(in, in.rows, in.heads, i, h, b)) return;
  const std::int64_t row = (std::int64_t{b} * in.heads + h) * in.rows + i;
  double x = 0;
  for (int d = 0; d < in.dim; ++d)
    x += o[row * in.dim + d] * in.value(in.d_o, in.ds, b, static_cast<int>(i), h, d);
  delta[row] = x;
}

__global__ void reference_dq(reference_input in, const double* p, const double* dp,
                             const double* delta, double* dq) {
  std::int64_t e;
  int h, b;
  if (!split(in, std::int64_t{in.rows} * in.dim, in.heads, e, h, b)) return;
  const int i = static_cast<int>(e / in.dim), d = static_cast<int>(e % in.dim),
            g = h / (in.heads / in.kv_heads);
  const std::int64_t row = (std::int64_t{b} * in.heads + h) * in.rows + i;
  double x = 0;
  for (int j = 0; j < in.cols; ++j) {
    x += p[row * in.cols + j] * (dp[row * in.cols + j] - delta[row]) *
         in.value(in.k, in.ks, b, j, g, d);
  }
  dq[row * in.dim + d] = x * in.scale;
}

__global__ void reference_dkv(reference_input in, const double* p, const double* dp,
                              const double* delta, double* dk, double* dv) {
  std::int64_t e;
  int g, b;
  if (!split(in, std::int64_t{in.cols} * in.dim, in.kv_heads, e, g, b)) return;
  const int j = static_cast<int>(e / in.dim), d = static_cast<int>(e % in.dim),
            group = in.heads / in.kv_heads;
  double x = 0, y = 0;
  for (int h = g * group; h < (g + 1) * group; ++h) {
    for (int i = 0; i < in.rows; ++i) {
      const std::int64_t row = (std::int64_t{b} * in.heads + h) * in.rows + i;
      const double probability = p[row * in.cols + j];
      x += probability * (dp[row * in.cols + j] - delta[row]) * in.value(in.q, in.qs, b, i, h, d);
      y += probability * in.value(in.d_o, in.ds, b, i, h, d);
    }
  }
  const std::int64_t at = ((std::int64_t{b} * in.kv_heads + g) * in.cols + j) * in.dim + d;
  dk[at] = x * in.scale, dv[at] = y;
}

template <class... A>
void launch(void (*kernel)(A...), std::int64_t count, std::type_identity_t<A>... arguments) {
  if (count == 0) return;
  kernel<<<static_cast<unsigned>((count + 255) / 256), 256>>>(arguments...);
  CUDA_CHECK(cudaGetLastError());
}

// ---- comparison

__global__ void difference(const void* data, element type, std::int64_t s0, std::int64_t s1,
                           std::int64_t s2, const double* expected, int tokens, int heads, int dim,
                           std::int64_t count, double* sums) {
  for (std::int64_t e = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; e < count;
       e += gridDim.x * std::int64_t{blockDim.x}) {
    const int d = static_cast<int>(e % dim), t = static_cast<int>(e / dim % tokens),
              h = static_cast<int>(e / dim / tokens % heads);
    const std::int64_t at = e / dim / tokens / heads * s0 + t * s1 + h * s2 + d;
    const double x = type == element::fp32 ? double(static_cast<const float*>(data)[at])
                     : type == element::bf16
                         ? double(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]))
                         : double(__half2float(static_cast<const __half*>(data)[at]));
    const double y = expected[e];
    const double error = x == y ? 0 : x - y;  // equal infinities
    atomicAdd(sums, error * error);
    if (!isinf(y)) atomicAdd(sums + 1, y * y);
    if (isnan(x) || isinf(error)) atomicAdd(sums + 2, 1.0);
  }
}

/// Of tensors that `batch` sequences share: where those from `first` on lie.
template <class T>
tensor_view<T> from_sequence(const device_tensor& x, std::int64_t first) {
  auto view = x.view<T>();
  view.data = reinterpret_cast<T*>(static_cast<char*>(x.memory.data) +
                                   first * x.batch_stride * std::int64_t(cuda::size_of(x.type)));
  return view;
}

/// |x - expected| / |expected| of `batch` sequences from `first` on and their first tokens; infinity where something was not written.
double relative_error(const device_tensor& x, const buffer& expected, std::int64_t first,
                      std::int64_t batch, std::int64_t tokens) {
  buffer sums(24);
  CUDA_CHECK(cudaMemset(sums.data, 0, 24));
  difference<<<256, 256>>>(
      from_sequence<void>(x, first).data, x.type, x.batch_stride, x.token_stride, x.head_stride,
      expected.doubles(), static_cast<int>(tokens), static_cast<int>(x.heads),
      static_cast<int>(x.dim), batch * tokens * x.heads * x.dim, sums.doubles());
  double host[3];
  CUDA_CHECK(cudaMemcpy(host, sums.data, 24, cudaMemcpyDeviceToHost));
  if (host[2] > 0 || std::isnan(host[0])) return INFINITY;
  return std::sqrt(host[0]) / std::max(std::sqrt(host[1]), 1e-30 + (host[1] == 0 ? 1.0 : 0.0));
}

double relative_error(const device_tensor& x, const buffer& expected) {
  return relative_error(x, expected, 0, x.batch, x.tokens);
}

int failures = 0, checks = 0;
double worst = 0;

void expect_small(const std::string& what, double error, double tolerance, bool verbose) {
  ++checks;
  const bool good = error < tolerance;
  if (!good) ++failures;
  if (good) worst = std::max(worst, error / tolerance);
  if (!good || verbose)
    std::printf("%s %-100s %.2e\n", good ? "  ok  " : "FAILED", what.c_str(), error);
}

// ---- a case

struct test_case {
  block_shape shape;
  element type = element::bf16;
  bool fp32_output = false, token_major = true;
  std::int64_t gap = 0;
};

std::string name_of(const test_case& c) {
  const block_shape& s = c.shape;
  const block_mask& m = s.mask;
  char text[256];
  std::snprintf(text, sizeof(text), "b%d h%d/%d %dx%d d%d %s%s%s gap%d", int(s.batch), int(s.heads),
                int(s.kv_heads), int(s.rows), int(s.cols), int(s.head_dim),
                c.type == element::bf16 ? "bf16" : "fp16", c.fp32_output ? "->fp32" : "",
                c.token_major ? " bthd" : " bhtd", int(c.gap));
  std::string name = text;
  if (m.causal) {
    std::snprintf(text, sizeof(text), " causal q%d+%di k%d+%dj w%d", int(m.query_first),
                  int(m.query_stride), int(m.key_first), int(m.key_stride), int(m.window));
    name += text;
  }
  return name;
}

struct back_end {
  std::string name;
  std::function<bool(const block_shape&)> serves;
  std::function<void(const cuda::forward_arguments&)> forward;
  std::function<void(const cuda::backward_arguments&)> backward;
};

std::vector<back_end> back_ends(const std::string& only) {
  std::vector<back_end> all;
  const auto own = [&](const char* name, cuda::path which,
                       std::function<bool(const block_shape&)> serves) {
    all.push_back({name, std::move(serves),
                   [which](const auto& a) { cuda::forward(a, nullptr, which); },
                   [which](const auto& a) {
                     buffer workspace(cuda::backward_workspace(a.shape));
                     workspace.poison();
                     cuda::backward(a, workspace.data, nullptr, which);
                     CUDA_CHECK(cudaDeviceSynchronize());
                   }});
  };
  own("generic", cuda::path::generic, [](const block_shape&) { return true; });
  own("hopper", cuda::path::hopper, cuda::hopper_available);
  if (const auto other = find_rival(); other && only != "own") {
    all.push_back({other->name, other->serves,
                   [other](const auto& a) {
                     buffer workspace(other->forward_workspace(a));
                     workspace.poison();
                     other->forward(a, workspace.data);
                     CUDA_CHECK(cudaDeviceSynchronize());
                   },
                   [other](const auto& a) {
                     buffer workspace(other->backward_workspace(a));
                     workspace.poison();
                     other->backward(a, workspace.data);
                     CUDA_CHECK(cudaDeviceSynchronize());
                   }});
  }
  if (!only.empty() && only != "own")
    std::erase_if(all, [&](const back_end& b) { return b.name != only; });
  return all;
}

void run_case(const test_case& c, unsigned seed, const std::vector<back_end>& ends, bool verbose) {
  const block_shape& s = c.shape;
  const element out = c.fp32_output ? element::fp32 : c.type;
  const auto queries = [&](element type) {
    return device_tensor(type, s.batch, s.rows, s.heads, s.head_dim, c.token_major, c.gap);
  };
  const auto keys = [&](element type) {
    return device_tensor(type, s.batch, s.cols, s.kv_heads, s.head_dim, c.token_major, c.gap);
  };
  const auto statistics = [&] {
    return device_tensor(element::fp32, s.batch, s.rows, s.heads, 1, c.token_major);
  };
  device_tensor q = queries(c.type), k = keys(c.type), v = keys(c.type), d_o = queries(c.type),
                o_full = queries(c.type);
  randomize(q, seed), randomize(k, seed + 1), randomize(v, seed + 2), randomize(d_o, seed + 3);

  reference_input in{q.memory.data,
                     k.memory.data,
                     v.memory.data,
                     d_o.memory.data,
                     {q.batch_stride, q.token_stride, q.head_stride},
                     {k.batch_stride, k.token_stride, k.head_stride},
                     {v.batch_stride, v.token_stride, v.head_stride},
                     {d_o.batch_stride, d_o.token_stride, d_o.head_stride},
                     c.type,
                     int(s.batch),
                     int(s.heads),
                     int(s.kv_heads),
                     int(s.rows),
                     int(s.cols),
                     int(s.head_dim),
                     s.scale > 0 ? s.scale : 1 / std::sqrt(double(s.head_dim)),
                     s.mask};
  const std::int64_t rows = s.batch * s.heads * s.rows, columns = s.batch * s.kv_heads * s.cols,
                     dim = s.head_dim;
  buffer p(rows * s.cols * 8), dp(rows * s.cols * 8), l(rows * 8), o(rows * dim * 8),
      delta(rows * 8), dq(rows * dim * 8), dk(columns * dim * 8), dv(columns * dim * 8);
  launch(reference_scores, rows * s.cols, in, p.doubles(), dp.doubles());
  launch(reference_softmax, rows, in, p.doubles(), l.doubles());
  launch(reference_output, rows * dim, in, p.doubles(), o.doubles());
  launch(reference_delta, rows, in, o.doubles(), delta.doubles());
  launch(reference_dq, rows * dim, in, p.doubles(), dp.doubles(), delta.doubles(), dq.doubles());
  launch(reference_dkv, columns * dim, in, p.doubles(), dp.doubles(), delta.doubles(), dk.doubles(),
         dv.doubles());
  CUDA_CHECK(cudaDeviceSynchronize());

  // Results have an error of their type's rounding; 1e-2 is the bound asked for, fp16 does better.
  const double tolerance = c.type == element::bf16 ? 8e-3 : 2e-3;
  device_tensor l_full = statistics(), delta_full = statistics();
  bool have_forward = false;
  for (const back_end& end : ends) {
    if (!end.serves(s)) continue;
    const std::string name = end.name + " " + name_of(c);
    try {
      device_tensor got_o = queries(out), got_l = statistics();
      got_o.memory.poison(), got_l.memory.poison();
      end.forward({s, c.type, out, q.view<const void>(), k.view<const void>(), v.view<const void>(),
                   got_o.view<void>(), got_l.view<float>()});
      CUDA_CHECK(cudaDeviceSynchronize());
      expect_small(name + " O", relative_error(got_o, o), tolerance, verbose);
      expect_small(name + " L", relative_error(got_l, l), 1e-4, verbose);
      if (!have_forward) {  // the backward's inputs come from the first back end's forward, as in a real run
        end.forward({s, c.type, c.type, q.view<const void>(), k.view<const void>(),
                     v.view<const void>(), o_full.view<void>(), l_full.view<float>()});
        cuda::row_dot({s.batch, s.rows, s.heads, dim}, d_o.whole(), o_full.whole(),
                      delta_full.view<float>(), nullptr);
        expect_small(name + " delta", relative_error(delta_full, delta), tolerance, verbose);
        have_forward = true;
      }
      device_tensor got_dq = queries(out), got_dk = keys(out), got_dv = keys(out);
      got_dq.memory.poison(), got_dk.memory.poison(), got_dv.memory.poison();
      end.backward({s, c.type, out, q.view<const void>(), k.view<const void>(),
                    v.view<const void>(), d_o.view<const void>(), o_full.view<const void>(),
                    l_full.view<const float>(),
                    seed % 3 == 0 ? tensor_view<const float>{} : delta_full.view<const float>(),
                    got_dq.view<void>(), got_dk.view<void>(), got_dv.view<void>()});
      CUDA_CHECK(cudaDeviceSynchronize());
      expect_small(name + " dQ", relative_error(got_dq, dq), tolerance, verbose);
      expect_small(name + " dK", relative_error(got_dk, dk), tolerance, verbose);
      expect_small(name + " dV", relative_error(got_dv, dv), tolerance, verbose);
    } catch (const infeasible& error) {
      std::printf("  --   %s: %s\n", name.c_str(), error.what());
    }
  }
}

reference_input decode_reference_of(const cuda::forward_arguments& a) {
  const block_shape& s = a.shape;
  return {.q = a.q.data,
          .k = a.k.data,
          .v = a.v.data,
          .d_o = nullptr,
          .qs = {a.q.batch_stride, a.q.token_stride, a.q.head_stride},
          .ks = {a.k.batch_stride, a.k.token_stride, a.k.head_stride},
          .vs = {a.v.batch_stride, a.v.token_stride, a.v.head_stride},
          .ds = {},
          .type = a.type,
          .batch = int(s.batch),
          .heads = int(s.heads),
          .kv_heads = int(s.kv_heads),
          .rows = int(s.rows),
          .cols = int(s.cols),
          .dim = int(s.head_dim),
          .scale = s.scale > 0 ? s.scale : 1 / std::sqrt(double(s.head_dim)),
          .mask = s.mask,
          .value_dim = int(s.value_dim())};
}

/// Forward of few rows, rows and heads packed: O and L against the reference. `requests`: the shapes of one call, each of its own
/// sequences of the case's batch.
void run_decode_case(const test_case& c, const std::vector<block_shape>& requests, unsigned seed,
                     bool verbose) {
  const block_shape& s = c.shape;
  const auto tensor_of = [&](element type, std::int64_t tokens, std::int64_t heads,
                             std::int64_t dim) {
    return device_tensor(type, s.batch, tokens, heads, dim, c.token_major, c.gap);
  };
  device_tensor q = tensor_of(c.type, s.rows, s.heads, s.head_dim),
                k = tensor_of(c.type, s.cols, s.kv_heads, s.head_dim),
                v = tensor_of(c.type, s.cols, s.kv_heads, s.value_dim());
  randomize(q, seed), randomize(k, seed + 1), randomize(v, seed + 2);
  const element out = c.fp32_output ? element::fp32 : c.type;
  device_tensor got_o = tensor_of(out, s.rows, s.heads, s.value_dim()),
                got_l(element::fp32, s.batch, s.rows, s.heads, 1, c.token_major);
  got_o.memory.poison(), got_l.memory.poison();
  std::vector<cuda::forward_arguments> blocks;
  std::int64_t first = 0;
  for (const auto& r : requests) {
    blocks.push_back({.shape = r,
                      .type = c.type,
                      .output = out,
                      .q = from_sequence<const void>(q, first),
                      .k = from_sequence<const void>(k, first),
                      .v = from_sequence<const void>(s.head_dim == 576 ? k : v, first),
                      .o = from_sequence<void>(got_o, first),
                      .l = from_sequence<float>(got_l, first)});
    first += r.batch;
  }
  buffer workspace(cuda::decode_workspace(blocks));
  workspace.poison();
  cuda::decode(blocks, workspace.data, nullptr);
  CUDA_CHECK(cudaDeviceSynchronize());
  first = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const block_shape& r = requests[i];
    const auto in = decode_reference_of(blocks[i]);
    const std::int64_t rows = r.batch * r.heads * r.rows;
    buffer p(rows * r.cols * 8), l(rows * 8), o(rows * r.value_dim() * 8);
    launch(reference_scores, rows * r.cols, in, p.doubles(), nullptr);
    launch(reference_softmax, rows, in, p.doubles(), l.doubles());
    launch(reference_output, rows * r.value_dim(), in, p.doubles(), o.doubles());
    std::string name =
        "decode " + name_of(test_case{r, c.type, c.fp32_output, c.token_major, c.gap});
    if (r.v_head_dim > 0) name += " values " + std::to_string(r.v_head_dim);
    if (requests.size() > 1)
      name += ", request " + std::to_string(i + 1) + " of " + std::to_string(requests.size());
    expect_small(name + " O", relative_error(got_o, o, first, r.batch, r.rows),
                 c.type == element::bf16 ? 8e-3 : 2e-3, verbose);
    expect_small(name + " L", relative_error(got_l, l, first, r.batch, r.rows), 1e-4, verbose);
    first += r.batch;
  }
}

void run_decode_case(const test_case& c, unsigned seed, bool verbose) {
  run_decode_case(c, {c.shape}, seed, verbose);
}

int pick_of(std::mt19937& random, std::initializer_list<int> values) {
  return values.begin()[random() % values.size()];
}

int number_between(std::mt19937& random, int low, int high) {
  return low + int(random() % unsigned(high - low + 1));
}

test_case random_decode_case(std::mt19937& random, bool quick) {
  const auto pick = [&](std::initializer_list<int> values) { return pick_of(random, values); };
  const auto between = [&](int low, int high) { return number_between(random, low, high); };
  test_case c;
  block_shape& s = c.shape;
  s.batch = pick({1, 1, 2, 5});
  s.kv_heads = pick({1, 1, 2, 3});
  s.heads = s.kv_heads * pick({1, 2, 4, 8, 7, 16});
  s.head_dim = pick({64, 128, 128, 192, 576});
  if (s.head_dim > 128) s.v_head_dim = s.head_dim == 192 ? 128 : 512;
  s.rows = pick({1, 1, 2, 4, 8, 37});
  s.cols = between(1, quick ? 600 : 9000);
  c.type = random() % 3 == 0 ? element::fp16 : element::bf16;
  c.fp32_output = random() % 3 == 0;
  c.token_major = random() % 2 == 0;
  c.gap = pick({0, 0, 8, 64});
  if (random() % 4 == 0) s.scale = 0.05f;
  block_mask& m = s.mask;
  m.causal = random() % 3 != 0;
  if (!m.causal) return c;
  m.query_first = s.cols - s.rows;
  if (random() % 3 == 0) m.window = between(1, 400);
  if (random() % 4 == 0) m.key_stride = between(1, 3), m.query_stride = between(1, 3);
  if (random() % 4 == 0) m.key_first = between(0, 700);
  return c;
}

/// Of a batch, each request with rows, keys and a place of its own; more than a launch takes, too.
std::vector<block_shape> random_requests(test_case& c, std::mt19937& random) {
  const auto count = pick_of(random, {2, 3, 7, 33, 70});
  if (count > 7) c.shape.cols = std::min<std::int64_t>(c.shape.cols, 1500);
  std::vector<block_shape> requests(std::size_t(count), c.shape);
  for (auto& r : requests) {
    r.batch = 1;
    if (random() % 4 == 0) r.rows = number_between(random, 0, int(r.rows));
    r.cols = number_between(random, 0, int(r.cols));
    if (r.mask.causal) r.mask.query_first = std::max<std::int64_t>(r.cols - r.rows, 0);
  }
  c.shape.batch = count;
  return requests;
}

void check_decode(unsigned seed, int cases, bool quick) {
  std::vector<test_case> fixed;
  for (const int dim : {128, 64, 192, 576}) {
    const auto add = [&](int heads, int kv_heads, int rows, int cols, const block_mask& mask,
                         int batch = 1, element type = element::bf16) {
      fixed.push_back({{.batch = batch,
                        .heads = heads,
                        .kv_heads = kv_heads,
                        .head_dim = dim,
                        .v_head_dim = dim == 192   ? 128
                                      : dim == 576 ? 512
                                                   : 0,
                        .rows = rows,
                        .cols = cols,
                        .mask = mask},
                       type});
    };
    add(8, 1, 1, 1, {});
    add(8, 1, 1, 0, {});
    add(8, 1, 1, 1000, {}, 2, element::fp16);
    add(8, 1, 4, 515, {.causal = true, .query_first = 511});
    add(8, 1, 4, 512, {.causal = true, .key_first = 2});
    add(4, 4, 33, 700, {.causal = true, .query_first = 600, .window = 64});
    if (quick) continue;
    add(64, 8, 1, 65536, {});
    add(64, 8, 1, 65537, {}, 4);
    add(8, 1, 2, 131072, {.causal = true, .query_first = 131070});
  }
  for (const test_case& c : fixed) run_decode_case(c, seed, true);
  std::mt19937 random(seed);
  for (int i = 0; i < cases; ++i)
    run_decode_case(random_decode_case(random, quick), seed + 13u * unsigned(i + 1), false);
  for (int i = 0; i < cases / 4; ++i) {
    auto c = random_decode_case(random, quick);
    const auto requests = random_requests(c, random);
    run_decode_case(c, requests, seed + 17u * unsigned(i + 1), false);
  }
  run_decode_case(
      {{.batch = 9, .heads = 64, .kv_heads = 8, .head_dim = 128, .rows = 1, .cols = 40000}},
      {{.batch = 1, .heads = 64, .kv_heads = 8, .head_dim = 128, .rows = 1, .cols = 40000},
       {.batch = 8, .heads = 64, .kv_heads = 8, .head_dim = 128, .rows = 1, .cols = 100}},
      seed, true);
}

/// The factor of <Q, K> is 1 / sqrt(dim); V's heads are as wide as K's.
block_shape block_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim, std::int64_t rows,
                     std::int64_t cols, const block_mask& mask, std::int64_t batch = 1) {
  return {.batch = batch,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = dim,
          .rows = rows,
          .cols = cols,
          .mask = mask};
}

/// The reference against three nested loops on the CPU.
void check_reference() {
  const int rows = 5, cols = 7, dim = 64;
  block_shape s = block_of(1, 1, dim, rows, cols, {true, 2, 1, 0, 1, 4});
  device_tensor q(element::bf16, 1, rows, 1, dim, true), k(element::bf16, 1, cols, 1, dim, true),
      v(element::bf16, 1, cols, 1, dim, true);
  randomize(q, 1), randomize(k, 2), randomize(v, 3);
  const auto host = [](const device_tensor& t) {
    std::vector<__nv_bfloat16> x(t.elements());
    CUDA_CHECK(cudaMemcpy(x.data(), t.memory.data, x.size() * 2, cudaMemcpyDeviceToHost));
    return x;
  };
  const auto hq = host(q), hk = host(k), hv = host(v);
  reference_input in{q.memory.data,
                     k.memory.data,
                     v.memory.data,
                     nullptr,
                     {0, dim, 0},
                     {0, dim, 0},
                     {0, dim, 0},
                     {},
                     element::bf16,
                     1,
                     1,
                     1,
                     rows,
                     cols,
                     dim,
                     0.125,
                     s.mask};
  buffer p(rows * cols * 8), l(rows * 8), o(rows * dim * 8);
  launch(reference_scores, rows * cols, in, p.doubles(), nullptr);
  launch(reference_softmax, rows, in, p.doubles(), l.doubles());
  launch(reference_output, rows * dim, in, p.doubles(), o.doubles());
  std::vector<double> got(rows * dim);
  CUDA_CHECK(cudaMemcpy(got.data(), o.data, got.size() * 8, cudaMemcpyDeviceToHost));
  double error = 0;
  for (int i = 0; i < rows; ++i) {
    double weight[cols] = {}, sum = 0;
    for (int j = 0; j < cols; ++j) {
      if (!visible(s.mask, i, j)) continue;
      double x = 0;
      for (int d = 0; d < dim; ++d)
        x += double(__bfloat162float(hq[i * dim + d])) * double(__bfloat162float(hk[j * dim + d]));
      sum += weight[j] = std::exp(x * 0.125);
    }
    for (int d = 0; d < dim; ++d) {
      double x = 0;
      for (int j = 0; j < cols; ++j)
        x += weight[j] / sum * double(__bfloat162float(hv[j * dim + d]));
      error = std::max(error, std::abs(x - got[i * dim + d]));
    }
  }
  expect_small("the fp64 reference against a CPU loop", error, 1e-12, true);
}

/// Halves of the columns computed apart and merged give the whole; then the other memory-bound kernels.
void check_elementwise(element type) {
  const std::int64_t rows = 300, cols = 514, heads = 3, dim = 64;
  block_shape s = block_of(heads, 1, dim, rows, cols, {true, 100, 1, 0, 1, 0});
  const auto queries = [&](element t) { return device_tensor(t, 1, rows, heads, dim, true, 8); };
  const auto statistics = [&] { return device_tensor(element::fp32, 1, rows, heads, 1, false); };
  device_tensor q = queries(type), k(type, 1, cols, 1, dim, true), v(type, 1, cols, 1, dim, true);
  randomize(q, 11), randomize(k, 12), randomize(v, 13);
  device_tensor whole = queries(element::fp32), whole_l = statistics(),
                sum = queries(element::fp32), sum_l = statistics();
  cuda::forward({s, type, element::fp32, q.view<const void>(), k.view<const void>(),
                 v.view<const void>(), whole.view<void>(), whole_l.view<float>()},
                nullptr);
  const cuda::extents extents{1, rows, heads, dim};
  sum.memory.poison(), sum_l.memory.poison();
  cuda::clear(extents, sum.whole(), sum_l.view<float>(), nullptr);
  for (int half = 0; half < 2; ++half) {
    block_shape part = s;
    part.cols = cols / 2;
    part.mask.key_first = half * cols / 2;
    device_tensor o = queries(type), l = statistics();
    auto k_view = k.view<const void>(), v_view = v.view<const void>();
    k_view.data = static_cast<const char*>(k_view.data) + half * cols / 2 * k.token_stride * 2;
    v_view.data = static_cast<const char*>(v_view.data) + half * cols / 2 * v.token_stride * 2;
    cuda::forward(
        {part, type, type, q.view<const void>(), k_view, v_view, o.view<void>(), l.view<float>()},
        nullptr);
    cuda::merge(extents, sum.whole(), sum_l.view<float>(), o.whole(), l.view<const float>(),
                nullptr);
  }
  const auto as_doubles = [&](const device_tensor& t) {  // packed (batch, head, token, d)
    const std::int64_t count = t.tokens * t.heads * t.dim;
    device_tensor flat(element::fp32, 1, t.tokens, t.heads, t.dim, false);
    cuda::copy({1, t.tokens, t.heads, t.dim}, flat.whole(), t.whole(), nullptr);
    std::vector<float> host(count);
    CUDA_CHECK(cudaMemcpy(host.data(), flat.memory.data, count * 4, cudaMemcpyDeviceToHost));
    std::vector<double> wide(host.begin(), host.end());
    buffer result(count * 8);
    CUDA_CHECK(cudaMemcpy(result.data, wide.data(), count * 8, cudaMemcpyHostToDevice));
    return result;
  };
  const std::string name = type == element::bf16 ? " bf16" : " fp16";
  expect_small("merge: O" + name, relative_error(sum, as_doubles(whole)), 5e-3, true);
  expect_small("merge: L" + name, relative_error(sum_l, as_doubles(whole_l)), 1e-5, true);

  device_tensor dealt = queries(type), back = queries(type);
  dealt.memory.poison(), back.memory.poison();
  cuda::interleave(extents, 4, dealt.whole(), q.whole(), nullptr);
  cuda::deinterleave(extents, 4, back.whole(), dealt.whole(), nullptr);
  expect_small("deinterleave(interleave(x)) == x" + name, relative_error(back, as_doubles(q)),
               1e-12, true);
  tensor_view<void> second = q.view<void>(),
                    at = dealt.view<void>();  // dealt[1] is the second run's first token
  std::vector<unsigned short> a(dim), b(dim);
  CUDA_CHECK(cudaMemcpy(a.data(), static_cast<char*>(second.data) + rows / 4 * q.token_stride * 2,
                        dim * 2, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(b.data(), static_cast<char*>(at.data) + dealt.token_stride * 2, dim * 2,
                        cudaMemcpyDeviceToHost));
  expect_small("interleave deals out runs" + name, a == b ? 0 : 1, 0.5, true);

  device_tensor twice = queries(element::fp32);
  cuda::copy(extents, twice.whole(), q.whole(), nullptr);
  cuda::accumulate(extents, twice.whole(), twice.whole(), nullptr);
  device_tensor again = queries(element::fp32);
  cuda::copy(extents, again.whole(), q.whole(), nullptr);
  cuda::accumulate(extents, again.whole(), q.whole(), nullptr);
  expect_small("accumulate" + name, relative_error(again, as_doubles(twice)), 1e-12, true);
  CUDA_CHECK(cudaDeviceSynchronize());
}

test_case random_case(std::mt19937& random, bool quick) {
  const auto pick = [&](std::initializer_list<int> values) { return pick_of(random, values); };
  const auto between = [&](int low, int high) { return number_between(random, low, high); };
  test_case c;
  block_shape& s = c.shape;
  s.batch = between(1, 2);
  s.kv_heads = between(1, 2);
  s.heads = s.kv_heads * pick({1, 1, 2, 3});
  s.head_dim = pick({64, 128, 64, 128, 96, 256});
  s.rows = between(1, quick ? 260 : 700);
  s.cols = between(1, quick ? 260 : 900);
  if (random() % 4 == 0) s.rows = pick({64, 128, 192, 256}), s.cols = pick({128, 176, 256, 352});
  c.type = random() % 3 == 0 ? element::fp16 : element::bf16;
  c.fp32_output = random() % 3 == 0;
  c.token_major = random() % 2 == 0;
  c.gap = pick({0, 0, 8, 64});
  if (random() % 4 == 0) s.scale = 0.05f;
  block_mask& m = s.mask;
  m.causal = random() % 4 != 0;
  if (m.causal) {
    switch (random() % 6) {
      case 0:
        break;
      case 1:
        m.key_first = 1;
        break;
      case 2:
        m.query_first = s.cols - s.rows;
        break;
      case 3:
        m.query_first = between(0, 300), m.key_first = between(0, 300);
        break;
      case 4:
        m.query_stride = between(1, 4), m.key_stride = between(1, 4), m.query_first = between(0, 9),
        m.key_first = between(0, 9);
        break;
      default:
        m.query_stride = m.key_stride = between(1, 3), m.query_first = between(0, 50),
        m.window = between(1, 200);
    }
  }
  return c;
}

}  // namespace
}  // namespace attnsim::kernels

int main(int argc, char** argv) {
  using namespace attnsim;
  using namespace attnsim::kernels;
  int cases = 120;
  unsigned seed = 1;
  bool quick = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--cases") && i + 1 < argc) cases = std::atoi(argv[++i]);
    if (!std::strcmp(argv[i], "--seed") && i + 1 < argc) seed = unsigned(std::atoi(argv[++i]));
    if (!std::strcmp(argv[i], "--only") && i + 1 < argc) only = argv[++i];
    if (!std::strcmp(argv[i], "--own")) only = "own";
    if (!std::strcmp(argv[i], "--quick")) quick = true;
  }
  check_reference();
  if (only.empty() || only == "own" || only == "decode") check_decode(seed, cases, quick);
  if (only == "decode") cases = 0;
  const auto ends = back_ends(only);
  check_elementwise(element::bf16);
  check_elementwise(element::fp16);
  std::vector<test_case> fixed;
  for (const int dim : {128, 64}) {
    const auto add = [&](block_shape s, element type = element::bf16) {
      fixed.push_back({s, type});
    };
    add(block_of(2, 2, dim, 128, 128, {}));
    add(block_of(2, 1, dim, 384, 352, {}), element::fp16);
    add(block_of(2, 2, dim, 256, 256, {true}));
    add(block_of(2, 1, dim, 100, 0, {}));
    if (quick) continue;
    add(block_of(4, 2, dim, 1024, 1024, {true}, 2));
    add(block_of(2, 2, dim, 1000, 1500, {}));
    add(block_of(2, 2, dim, 640, 640, {true, 0, 8, 1, 8, 0}));
    add(block_of(2, 2, dim, 300, 500, {true, 200, 1, 0, 1, 0}));
    add(block_of(2, 2, dim, 512, 512, {true, 0, 1, 600, 1, 0}));
    add(block_of(2, 2, dim, 512, 512, {true, 3, 1, 0, 4, 0}));
    add(block_of(2, 2, dim, 777, 777, {true, 0, 1, 0, 1, 100}));
  }
  for (const test_case& c : fixed) {
    if (!ends.empty()) run_case(c, seed, ends, true);
  }
  std::mt19937 random(seed);
  for (int i = 0; i < cases; ++i)
    run_case(random_case(random, quick), seed + 11u * unsigned(i + 1), ends, false);
  std::printf("%d checks, %d failed; worst error %.2f of its tolerance\n", checks, failures, worst);
  return failures > 0;
}
