// A parallel loop over all cores. The body may throw: an exception ends the loop and comes out of it. One of three sources is
// built: by oneTBB; without it, by threads of its own; where there are no threads, as in a browser's page, one after another.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace attnsim {

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

template <typename T, typename F>
void parallel_for_each(std::vector<T>& items, F f) {
  parallel_for(items.size(), [&](std::size_t i) { f(items[i]); });
}

}  // namespace attnsim
