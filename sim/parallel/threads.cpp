#include "sim/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace attnsim {

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr first;
  std::mutex guard;
  const auto work = [&] {
    try {
      for (auto i = next++; i < count; i = next++) body(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(guard);
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    const auto threads = std::min<std::size_t>(count, std::thread::hardware_concurrency());
    for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work);
    work();
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace attnsim
