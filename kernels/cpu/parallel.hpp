// A loop whose turns are independent, spread over threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace attnsim::kernels::cpu {

/// Calls body(i) once for every i in [0, count), on the calling thread and up to threads - 1 more;
/// each takes the next index when it is done with one. body must not throw.
template <typename Body>
void parallel_for(std::int64_t count, int threads, const Body& body) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (auto i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::jthread> others;
  for (std::int64_t t = 1; t < std::min<std::int64_t>(threads, count); ++t)
    others.emplace_back(work);
  work();
}

}  // namespace attnsim::kernels::cpu
