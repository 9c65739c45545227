// A parallel loop over all cores: by oneTBB or, without it, by threads of its own. The body may throw: an exception ends the
// loop and comes out of it.
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
