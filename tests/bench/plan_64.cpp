// plan_64 [REPEATS]: seconds of one prediction and of one plan for 64 GPUs, the best of REPEATS, on a line each: the part
// of tests/bench/python_overhead that is C++.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>

#include "sim/planner.hpp"

namespace {

template <typename F>
double best_seconds(int repeats, F f) {
  using clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const auto start = clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(clock::now() - start).count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace attnsim;
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 5;
  const auto c = read_cluster("nd-h100-v5", {.nodes = 8});
  const attention a{.heads = 64, .kv_heads = 8, .sequence = 1 << 20};
  const strategy s{.schedule = "mesh", .rows = 8, .cols = 8, .tokens = token_layout::striped};
  const double one = best_seconds(repeats, [&] { predict(c, a, s, 64, pass_kind::both); });
  const double all = best_seconds(repeats, [&] { plan(c, {.problem = a, .ranks = 64}); });
  fmt::print("{}\n{}\n", one, all);
}
