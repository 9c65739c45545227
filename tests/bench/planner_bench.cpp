// The planner's time for one causal layer of 64 query heads and 8 K/V heads, forward and backward, over all schedules,
// grids, layouts and placements; CPU is of all threads. tests/bench/python_overhead reads `predict` and `plan` of 64 GPUs.
//
//   plan     counters: strategies considered, estimated by the closed form, simulated
//   pruning  the pruned search; counters: strategies that it simulates, of how many, how many times faster than the
//            exhaustive search it is, and by what share its best answer is slower than the exhaustive search's
#include <benchmark/benchmark.h>

#include <ctime>
#include <string>

#include "ask/planner.hpp"

namespace attnsim {
namespace {

void predict(benchmark::State& state) {
  const auto c = read_cluster("nd-h100-v5", {.nodes = 8});
  const attention a{.heads = 64, .kv_heads = 8, .sequence = 1 << 20};
  const strategy s{.schedule = "mesh", .rows = 8, .cols = 8, .tokens = token_layout::striped};
  for (auto _ : state) benchmark::DoNotOptimize(predict(c, a, s, 64, pass_kind::both));
}
BENCHMARK(predict)->Unit(benchmark::kMillisecond);

void plan(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  const auto c = read_cluster("nd-h100-v5", {.nodes = gpus / 8});
  const attention a{.heads = 64, .kv_heads = 8, .sequence = state.range(1) << 20};
  plan_result result;
  for (auto _ : state) result = plan(c, {.problem = a, .ranks = gpus});
  state.counters["considered"] = static_cast<double>(result.considered);
  state.counters["estimated"] = static_cast<double>(result.estimated);
  state.counters["simulated"] = static_cast<double>(result.simulated);
}
BENCHMARK(plan)
    ->ArgNames({"gpus", "Mtokens"})
    ->Args({64, 1})
    ->Args({1024, 1})
    ->Args({1024, 4})
    ->Args({8192, 1})
    ->Args({8192, 32})
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void pruning(benchmark::State& state, const std::string& name) {
  const int gpus = static_cast<int>(state.range(0));
  auto c = read_cluster(name);
  c = read_cluster(name, {.nodes = gpus / c.devices_per_node});
  const plan_request request{
      .problem = {.heads = 32, .kv_heads = state.range(2), .sequence = state.range(1) << 10},
      .ranks = gpus};
  plan_result pruned;
  const auto start = std::clock();  // CPU time of all threads
  for (auto _ : state) pruned = plan(c, request);
  const auto middle = std::clock();
  const auto all = plan(c, exhaustive(request));
  const double once = static_cast<double>(middle - start) / static_cast<double>(state.iterations());
  state.counters["simulated"] = static_cast<double>(pruned.simulated);
  state.counters["of"] = static_cast<double>(all.simulated);
  state.counters["times_faster"] = static_cast<double>(std::clock() - middle) / once;
  state.counters["best_behind"] = pruned.candidates[0].time / all.candidates[0].time - 1;
}

void small_cases(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"gpus", "Ktokens", "kv_heads"})->Unit(benchmark::kMillisecond);
  bench->MeasureProcessCPUTime()->UseRealTime();
  for (const int gpus : {16, 32}) bench->Args({gpus, 16, 32})->Args({gpus, 256, 4});
}
BENCHMARK_CAPTURE(pruning, nd_h100_v5, "nd-h100-v5")->Apply(small_cases);
BENCHMARK_CAPTURE(pruning, nd_a100_v4, "nd-a100-v4")->Apply(small_cases);
BENCHMARK_CAPTURE(pruning, nc_h100_v5, "nc-h100-v5")->Apply(small_cases);

}  // namespace
}  // namespace attnsim
