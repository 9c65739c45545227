// A parallel loop over all cores whose body may throw: the first exception comes out of the loop.
#pragma once

#include <algorithm>
#include <exception>
#include <execution>
#include <mutex>
#include <vector>

namespace attnsim {

template <typename T, typename F>
void parallel_for_each(std::vector<T>& items, F f) {
  std::exception_ptr first;
  std::mutex guard;
  std::for_each(std::execution::par, items.begin(), items.end(), [&](T& item) {
    try {
      f(item);
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!first) first = std::current_exception();
    }
  });
  if (first) std::rethrow_exception(first);
}

}  // namespace attnsim
