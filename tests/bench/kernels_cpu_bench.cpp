// GFLOP/s of attention on the CPU: the tiled kernel by storage type, mask and block size, against
// the fp64 oracle. A visible pair costs 4 head_dim FLOP forward and 10 head_dim FLOP backward (five
// products of 2 head_dim).
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/reference.hpp"
#include "kernels/float16.hpp"
#include "tests/kernels/random_block.hpp"

namespace attnsim::kernels::cpu {
namespace {

block_shape square(std::int64_t tokens, bool causal) {
  return {.heads = 4, .kv_heads = 2, .rows = tokens, .cols = tokens, .mask = {.causal = causal}};
}

void count_flops(benchmark::State& state, const block_shape& shape, double flops_per_pair) {
  const double pairs = static_cast<double>(visible_pairs(shape.mask, shape.rows, shape.cols));
  const double flops = flops_per_pair * pairs * static_cast<double>(shape.batch * shape.heads);
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

template <typename T>
void tiled_forward(benchmark::State& state) {
  const auto shape = square(state.range(0), state.range(1) != 0);
  test::random_source random{1};
  const auto query = test::random_tensor<T>(test::query_shape(shape), random);
  const auto key = test::random_tensor<T>(test::key_shape(shape), random);
  const auto value = test::random_tensor<T>(test::key_shape(shape), random);
  test::tensor<T> output(test::query_shape(shape));
  test::tensor<float> lse(test::row_shape(shape));
  for (auto _ : state) {
    attention_forward(shape, query.view(), key.view(), value.view(), output.view(), lse.view());
  }
  count_flops(state, shape, 4.0 * shape.head_dim);
}

template <typename T>
void tiled_backward(benchmark::State& state) {
  const auto shape = square(state.range(0), state.range(1) != 0);
  test::random_source random{1};
  const auto query = test::random_tensor<T>(test::query_shape(shape), random);
  const auto key = test::random_tensor<T>(test::key_shape(shape), random);
  const auto value = test::random_tensor<T>(test::key_shape(shape), random);
  const auto output_gradient = test::random_tensor<T>(test::query_shape(shape), random);
  test::tensor<float> lse(test::row_shape(shape));
  test::tensor<float> delta(test::row_shape(shape));
  test::tensor<T> query_gradient(test::query_shape(shape));
  test::tensor<T> key_gradient(test::key_shape(shape));
  test::tensor<T> value_gradient(test::key_shape(shape));
  attention_forward(shape, query.view(), key.view(), value.view(), query_gradient.view(),
                    lse.view());
  for (auto _ : state) {
    attention_backward(shape, query.view(), key.view(), value.view(), output_gradient.view(),
                       lse.read(), delta.read(), query_gradient.view(), key_gradient.view(),
                       value_gradient.view());
  }
  count_flops(state, shape, 10.0 * shape.head_dim);
}

void naive_forward(benchmark::State& state) {
  const auto shape = square(state.range(0), state.range(1) != 0);
  test::random_source random{1};
  const auto query = test::random_tensor<float>(test::query_shape(shape), random).dense();
  const auto key = test::random_tensor<float>(test::key_shape(shape), random).dense();
  const auto attention = test::reference_of(shape);
  for (auto _ : state) {
    benchmark::DoNotOptimize(reference_forward(attention, query, key, key));
  }
  count_flops(state, shape, 4.0 * shape.head_dim);
}

void naive_backward(benchmark::State& state) {
  const auto shape = square(state.range(0), state.range(1) != 0);
  test::random_source random{1};
  const auto query = test::random_tensor<float>(test::query_shape(shape), random).dense();
  const auto key = test::random_tensor<float>(test::key_shape(shape), random).dense();
  const auto attention = test::reference_of(shape);
  for (auto _ : state) {
    benchmark::DoNotOptimize(reference_backward(attention, query, key, key, query));
  }
  count_flops(state, shape, 10.0 * shape.head_dim);
}

void blocks(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"tokens", "causal"})->Unit(benchmark::kMillisecond);
  bench->ArgsProduct({{64, 512, 2048}, {0, 1}});
}
void small_blocks(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"tokens", "causal"})->Unit(benchmark::kMillisecond);
  bench->ArgsProduct({{64, 512}, {0, 1}});
}

BENCHMARK(tiled_forward<float>)->Apply(blocks);
BENCHMARK(tiled_forward<bf16>)->Apply(blocks);
BENCHMARK(tiled_forward<fp16>)->Apply(blocks);
BENCHMARK(naive_forward)->Apply(small_blocks);
BENCHMARK(tiled_backward<float>)->Apply(blocks);
BENCHMARK(tiled_backward<bf16>)->Apply(blocks);
BENCHMARK(tiled_backward<fp16>)->Apply(blocks);
BENCHMARK(naive_backward)->Apply(small_blocks);

}  // namespace
}  // namespace attnsim::kernels::cpu
