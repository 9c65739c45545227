#include "sim/timeline.hpp"

#include <algorithm>

namespace attnsim {

const rank_timeline& timeline::slowest() const {
  return *std::max_element(ranks.begin(), ranks.end(),
                           [](const auto& a, const auto& b) { return a.end < b.end; });
}

}  // namespace attnsim
