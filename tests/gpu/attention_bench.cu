// Times forward and backward of this project's kernels and of cuDNN in one process, medians by CUDA events.
// TFLOP/s count visible pairs only: 4 head_dim a pair forward, 10 backward. Backward starts from dO and O in both.
//
//   attention_bench [--repeats N] [--generic] [--large] [--dim N] [--seq N]
//   attention_bench --decode      few rows: what is read of K and V a second, beside cuDNN and beside a copy
//   attention_bench --tables      only the kernel tables of a device profile (topologies/devices/*.yaml)
#include <cstring>

#include "kernels/cuda/decode.hpp"
#include "model/error.hpp"
#include "tests/gpu/gpu_block.cuh"

namespace attnsim::kernels {
namespace {

using cuda::element;

block_shape square(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim, std::int64_t side,
                   bool causal) {
  return {.heads = heads,
          .kv_heads = kv_heads,
          .head_dim = dim,
          .rows = side,
          .cols = side,
          .mask = {.causal = causal}};
}

double pairs(const block_shape& s) {
  if (!s.mask.causal) return double(s.rows) * double(s.cols);
  double count = 0;
  for (std::int64_t i = 0; i < s.rows; ++i)
    count +=
        double(std::clamp<std::int64_t>(s.mask.query_first + i - s.mask.key_first + 1, 0, s.cols));
  return count;
}

struct result {
  double times[2][3] = {};  // ms: forward, backward x own, cudnn, generic
  double flop[2] = {};      // GFLOP
  double rate(int pass, int which) const {
    return times[pass][which] > 0 ? flop[pass] / times[pass][which] : 0;
  }
};

result measure(const block_shape& s, int repeats, bool with_generic) {
  const element type = element::bf16;
  const auto queries = [&] {
    return device_tensor(type, s.batch, s.rows, s.heads, s.head_dim, true);
  };
  const auto keys = [&] {
    return device_tensor(type, s.batch, s.cols, s.kv_heads, s.head_dim, true);
  };
  device_tensor q = queries(), k = keys(), v = keys(), o = queries(), d_o = queries(),
                d_q = queries(), d_k = keys(), d_v = keys();
  device_tensor l(element::fp32, s.batch, s.rows, s.heads, 1, false);
  randomize(q, 1), randomize(k, 2), randomize(v, 3), randomize(d_o, 4);
  const cuda::forward_arguments f{s,
                                  type,
                                  type,
                                  q.view<const void>(),
                                  k.view<const void>(),
                                  v.view<const void>(),
                                  o.view<void>(),
                                  l.view<float>()};
  const cuda::backward_arguments b{s,
                                   type,
                                   type,
                                   q.view<const void>(),
                                   k.view<const void>(),
                                   v.view<const void>(),
                                   d_o.view<const void>(),
                                   o.view<const void>(),
                                   l.view<const float>(),
                                   {},
                                   d_q.view<void>(),
                                   d_k.view<void>(),
                                   d_v.view<void>()};
  buffer workspace(cuda::backward_workspace(s));
  const double work = pairs(s) * double(s.batch * s.heads * s.head_dim) *
                      1e-9;  // GFLOP per unit count, for ms -> TFLOP/s

  result r;
  r.flop[0] = 4 * work, r.flop[1] = 10 * work;
  auto& times = r.times;
  const auto own = [&](cuda::path which, int at) {
    times[0][at] = median_ms(repeats, [&] { cuda::forward(f, nullptr, which); });
    times[1][at] = median_ms(repeats, [&] { cuda::backward(b, workspace.data, nullptr, which); });
  };
  own(cuda::path::automatic, 0);
  if (const auto other = find_rival()) {
    try {
      buffer forward_space(other->forward_workspace(f)),
          backward_space(other->backward_workspace(b));
      times[0][1] = median_ms(repeats, [&] { other->forward(f, forward_space.data); });
      times[1][1] = median_ms(repeats, [&] { other->backward(b, backward_space.data); });
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", other->name.c_str(), error.what());
    }
  }
  if (with_generic) own(cuda::path::generic, 2);
  return r;
}

void bench(const block_shape& s, int repeats, bool with_generic) {
  const result r = measure(s, repeats, with_generic);
  for (int pass = 0; pass < 2; ++pass) {
    std::printf(
        "%-8s d%-3d %2d/%-2d %5d x %-5d %-6s own %8.4f ms %6.1f TF | cudnn %8.4f ms %6.1f TF | "
        "own/cudnn %.2f",
        pass == 0 ? "forward" : "backward", int(s.head_dim), int(s.heads), int(s.kv_heads),
        int(s.rows), int(s.cols), s.mask.causal ? "causal" : "full", r.times[pass][0],
        r.rate(pass, 0), r.times[pass][1], r.rate(pass, 1), r.times[pass][1] / r.times[pass][0]);
    if (with_generic)
      std::printf(" | generic %8.4f ms %6.1f TF", r.times[pass][2], r.rate(pass, 2));
    std::printf("\n");
  }
  std::fflush(stdout);
}

void print_tables(int repeats) {
  const int sizes[] = {512, 1024, 2048, 4096, 8192, 16384};
  std::string lines[2];  // own, cudnn
  for (const int dim : {64, 128}) {
    for (const bool causal : {false, true}) {
      std::vector<result> results;
      for (const int n : sizes)
        results.push_back(measure(square(32, 32, dim, n, causal), repeats, false));
      for (int which = 0; which < 2; ++which) {
        for (int pass = 0; pass < 2; ++pass) {
          lines[which] += std::string("      - {pass: ") + (pass == 0 ? "forward" : "backward") +
                          ", mask: " + (causal ? "causal" : "full") +
                          ", head_dim: " + std::to_string(dim) +
                          ", heads: 32,\n         square: [512, 1024, 2048, 4096, 8192, 16384],\n  "
                          "       tflops: [";
          for (std::size_t i = 0; i < results.size(); ++i) {
            lines[which] +=
                (i > 0 ? ", " : "") + std::to_string(int(results[i].rate(pass, which) + 0.5));
          }
          lines[which] += "]}\n";
        }
      }
    }
  }
  for (int which = 0; which < 2; ++which) {
    const auto other = find_rival();
    if (which == 1 && !other) continue;
    std::printf("  - name: %s\n    tables:\n%s", which == 0 ? "attnsim-cuda" : other->name.c_str(),
                lines[which].c_str());
  }
}

/// GB/s read and written by a copy that the cache does not hold.
double copy_rate(int repeats) {
  const std::size_t bytes = std::size_t{1} << 31;
  buffer from(bytes), to(bytes);
  const double ms = median_ms(repeats, [&] {
    CUDA_CHECK(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDeviceToDevice, nullptr));
  });
  return 2e-6 * double(bytes) / ms;
}

/// Median of `run` behind a tenth of a second of it, for clocks to settle.
double settled_ms(int repeats, const std::function<void()>& run) {
  constexpr double enough = 100;
  for (double spent = 0; spent < enough;) spent += std::max(1., median_ms(9, run) * 9);
  return median_ms(repeats, run);
}

/// Tensors of a call of few rows.
struct few_rows {
  block_shape s;
  device_tensor q, k, v, o, l;

  /// `interleaved`: the sequences of a token side by side, as an executor has them, not one behind the other.
  few_rows(const block_shape& shape, bool interleaved)
      : s(shape),
        q(tensor_of(s.rows, s.heads, s.head_dim, interleaved)),
        k(tensor_of(s.cols, s.kv_heads, s.head_dim, interleaved)),
        v(tensor_of(s.cols, s.kv_heads, s.value_dim(), interleaved)),
        o(tensor_of(s.rows, s.heads, s.value_dim(), interleaved)),
        l(element::fp32, s.batch, s.rows, s.heads, 1, true) {
    unsigned seed = 0;
    for (auto* t : {&q, &k, &v}) {
      fill_normal<<<1024, 256>>>(t->memory.data, t->type, t->memory.bytes / 2, ++seed, 1);
      CUDA_CHECK(cudaGetLastError());
    }
  }
  device_tensor tensor_of(std::int64_t tokens, std::int64_t heads, std::int64_t dim,
                          bool interleaved) const {
    device_tensor t(element::bf16, s.batch, tokens, heads, dim, true);
    if (interleaved) t.batch_stride = heads * dim, t.token_stride = s.batch * heads * dim;
    return t;
  }
  bool is_latent() const { return s.head_dim == 576; }  ///< its values are in the keys
  cuda::forward_arguments arguments() const {
    return {.shape = s,
            .type = element::bf16,
            .output = element::bf16,
            .q = q.view<const void>(),
            .k = k.view<const void>(),
            .v = is_latent() ? k.view<const void>() : v.view<const void>(),
            .o = o.view<void>(),
            .l = l.view<float>()};
  }
  /// Of K and V, of so many keys of all sequences.
  double bytes(std::int64_t keys) const {
    return 2. * double(keys * s.kv_heads) * double(s.head_dim + (is_latent() ? 0 : s.value_dim()));
  }
};

void bench_decode(const block_shape& s, bool interleaved, int repeats) {
  const few_rows on(s, interleaved);
  const auto a = on.arguments();
  buffer workspace(cuda::decode_workspace(a));
  const double copied = copy_rate(5);
  const double own = settled_ms(repeats, [&] { cuda::decode(a, workspace.data, nullptr); });
  double other = 0;
  if (const auto library = find_rival(); library && library->serves(s)) {
    try {
      buffer space(library->forward_workspace(a));
      other = settled_ms(repeats, [&] { library->forward(a, space.data); });
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", library->name.c_str(), error.what());
    }
  }
  const double bytes = on.bytes(s.batch * s.cols);
  std::printf(
      "decode b%-2d %2d/%-2d d%d/%d %2d x %-7d %-11s own %8.4f ms %5.0f GB/s | cudnn %8.4f ms | "
      "copy "
      "%5.0f GB/s | own/copy %.3f\n",
      int(s.batch), int(s.heads), int(s.kv_heads), int(s.head_dim), int(s.value_dim()), int(s.rows),
      int(s.cols), interleaved ? "interleaved" : "apart", own, bytes / own * 1e-6, other, copied,
      bytes / own * 1e-6 / copied);
  std::fflush(stdout);
}

/// Requests of several lengths: by one call, by one each, and all padded to the longest.
void bench_lengths(const char* name, const std::vector<std::int64_t>& lengths, int repeats) {
  const auto longest = *std::max_element(lengths.begin(), lengths.end());
  const few_rows on({.batch = std::int64_t(lengths.size()),
                     .heads = 64,
                     .kv_heads = 8,
                     .head_dim = 128,
                     .rows = 1,
                     .cols = longest},
                    false);
  const auto padded = on.arguments();
  std::vector<cuda::forward_arguments> requests;
  const auto ahead = [](auto& view, std::size_t count, std::size_t bytes) {
    view.data =
        reinterpret_cast<decltype(view.data)>(reinterpret_cast<std::uintptr_t>(view.data) +
                                              count * std::size_t(view.batch_stride) * bytes);
  };
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    auto a = padded;
    a.shape.batch = 1, a.shape.cols = lengths[i];
    ahead(a.q, i, 2), ahead(a.k, i, 2), ahead(a.v, i, 2), ahead(a.o, i, 2), ahead(a.l, i, 4);
    requests.push_back(a);
  }
  buffer workspace(std::max(cuda::decode_workspace(requests), cuda::decode_workspace(padded)));
  const double copied = copy_rate(5);
  const double one = settled_ms(repeats, [&] { cuda::decode(requests, workspace.data, nullptr); });
  const double each = settled_ms(repeats, [&] {
    for (const auto& a : requests) cuda::decode(a, workspace.data, nullptr);
  });
  const double as_longest =
      settled_ms(repeats, [&] { cuda::decode(padded, workspace.data, nullptr); });
  std::int64_t keys = 0;
  for (const auto length : lengths) keys += length;
  const double bytes = on.bytes(keys);
  std::printf(
      "lengths %-34s 64/8 d128: one call %8.4f ms %5.0f GB/s | a call each %8.4f ms | padded %8.4f "
      "ms | copy "
      "%5.0f GB/s | one call/copy %.3f\n",
      name, one, bytes / one * 1e-6, each, as_longest, copied, bytes / one * 1e-6 / copied);
  std::fflush(stdout);
}

void bench_decode(int repeats) {
  const auto run = [&](int batch, int rows, int cols, int heads, int kv_heads, int dim = 128,
                       int value_dim = 0, bool interleaved = false) {
    bench_decode({.batch = batch,
                  .heads = heads,
                  .kv_heads = kv_heads,
                  .head_dim = dim,
                  .v_head_dim = value_dim,
                  .rows = rows,
                  .cols = cols,
                  .mask = {.causal = rows > 1, .query_first = cols - rows}},
                 interleaved, repeats);
  };
  for (const int batch : {1, 16}) {
    for (const int cols : {65536, 131072, 262144}) run(batch, 1, cols, 64, 8);
  }
  run(1, 1, 1 << 20, 64, 8);
  run(16, 1, 65536, 64, 8, 128, 0, true);
  run(4, 1, 65536, 64, 8);
  run(1, 1, 65536, 8, 1);
  run(1, 1, 1 << 20, 8, 1);
  run(16, 1, 65536, 8, 1);
  run(16, 1, 65536, 8, 1, 128, 0, true);
  for (const int rows : {2, 4, 16, 64}) run(1, rows, 131072, 64, 8);
  run(1, 1, 131072, 64, 8, 64);
  run(16, 1, 65536, 64, 8, 64);
  run(1, 1, 65536, 32, 32, 192, 128);
  run(1, 1, 1 << 20, 16, 1, 576, 512);
  run(1, 1, 1 << 20, 128, 1, 576, 512);
  run(16, 1, 65536, 128, 1, 576, 512);
  run(1, 1, 8192, 64, 8);
  run(1, 1, 16384, 64, 8);
  run(16, 1, 2048, 64, 8);
  run(64, 1, 4096, 64, 8);

  std::mt19937 random(1);
  std::lognormal_distribution<double> spread(9, 1);  // about 8K in the middle
  std::vector<std::int64_t> drawn(32);
  for (auto& length : drawn)
    length = std::clamp<std::int64_t>(std::int64_t(spread(random)), 64, 131072);
  bench_lengths("64K, 7 of 4K", {65536, 4096, 4096, 4096, 4096, 4096, 4096, 4096}, repeats);
  bench_lengths("128K, 64K, 32K, 16K", {131072, 65536, 32768, 16384}, repeats);
  bench_lengths("32 drawn, lognormal about 8K", drawn, repeats);
  bench_lengths(
      "32 of 1K, 32 of 8K",
      [] {
        std::vector<std::int64_t> lengths(64, 1024);
        std::fill(lengths.begin() + 32, lengths.end(), 8192);
        return lengths;
      }(),
      repeats);
}

void bench_elementwise(int repeats) {
  const cuda::extents e{1, 8192, 32, 128};
  device_tensor acc(element::fp32, 1, e.tokens, e.heads, e.head_dim, true),
      part(element::bf16, 1, e.tokens, e.heads, e.head_dim, true),
      other(element::bf16, 1, e.tokens, e.heads, e.head_dim, true);
  device_tensor l(element::fp32, 1, e.tokens, e.heads, 1, false),
      part_l(element::fp32, 1, e.tokens, e.heads, 1, false);
  randomize(acc, 1), randomize(part, 2), randomize(other, 3), randomize(l, 4), randomize(part_l, 5);
  const double n = double(e.tokens * e.heads * e.head_dim);
  const auto row = [&](const char* name, double bytes, const std::function<void()>& run) {
    const double ms = median_ms(repeats, run);
    std::printf("%-24s %8.4f ms %7.0f GB/s\n", name, ms, bytes / ms * 1e-6);
  };
  row("merge fp32 += bf16", n * 10, [&] {
    cuda::merge(e, acc.whole(), l.view<float>(), part.whole(), part_l.view<const float>(), nullptr);
  });
  row("row_dot bf16", n * 4,
      [&] { cuda::row_dot(e, part.whole(), other.whole(), l.view<float>(), nullptr); });
  row("accumulate fp32 += bf16", n * 10,
      [&] { cuda::accumulate(e, acc.whole(), part.whole(), nullptr); });
  row("copy bf16 <- fp32", n * 6, [&] { cuda::copy(e, part.whole(), acc.whole(), nullptr); });
  row("interleave bf16, 8 parts", n * 4,
      [&] { cuda::interleave(e, 8, other.whole(), part.whole(), nullptr); });
}

}  // namespace
}  // namespace attnsim::kernels

int main(int argc, char** argv) {
  using namespace attnsim;
  using namespace attnsim::kernels;
  int repeats = 15, dim = 0, seq = 0;
  bool generic = false, small = true, tables = false, decode = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--repeats") && i + 1 < argc) repeats = std::atoi(argv[++i]);
    if (!std::strcmp(argv[i], "--dim") && i + 1 < argc) dim = std::atoi(argv[++i]);
    if (!std::strcmp(argv[i], "--seq") && i + 1 < argc) seq = std::atoi(argv[++i]);
    if (!std::strcmp(argv[i], "--generic")) generic = true;
    if (!std::strcmp(argv[i], "--large")) small = false;
    if (!std::strcmp(argv[i], "--tables")) tables = true;
    if (!std::strcmp(argv[i], "--decode")) decode = true;
  }
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, %d multiprocessors, CUDA %d", properties.name, properties.multiProcessorCount,
              CUDART_VERSION);
  if (const auto other = find_rival())
    std::printf(", %s %s", other->name.c_str(), other->version.c_str());
  std::printf("; bf16, batch 1, medians of %d\n", repeats);
  if (tables) return print_tables(repeats), 0;
  if (decode) return bench_decode(repeats), 0;
  for (const int d : {128, 64}) {
    if (dim != 0 && d != dim) continue;
    for (const int n : {8192, 16384}) {
      if (seq != 0 && n != seq) continue;
      for (const bool causal : {false, true})
        bench(square(32, 32, d, n, causal), repeats, generic && n == 8192);
    }
  }
  if (small) {
    for (const int n : {512, 1024, 2048, 4096}) {
      for (const bool causal : {false, true})
        bench(square(32, 32, 128, n, causal), 3 * repeats, false);
    }
    bench(square(32, 8, 128, 8192, true), repeats, false);
    bench_elementwise(3 * repeats);
  }
  return 0;
}
