#include "sim/link_use.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace attnsim {
namespace {

template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

bool positive_and_finite(double value) {
  return value > 0 && std::isfinite(value);
}

}  // namespace

std::vector<link_use> merged_path(std::span<const link_use> path, std::size_t links) {
  std::vector<link_use> merged;
  merged.reserve(path.size());
  for (const link_use& use : path) {
    if (use.link >= links) refuse("path: link ", use.link, ": expected a number below ", links);
    if (!positive_and_finite(use.weight)) {
      refuse("path: link ", use.link, ": weight ", use.weight, ": expected positive and finite");
    }
    const auto same = std::find_if(merged.begin(), merged.end(),
                                   [&](const link_use& other) { return other.link == use.link; });
    if (same == merged.end()) {
      merged.push_back(use);
    } else {
      same->weight += use.weight;
    }
  }
  return merged;
}

void require_capacities(std::span<const double> capacities) {
  for (std::size_t link = 0; link < capacities.size(); ++link) {
    if (!positive_and_finite(capacities[link])) {
      refuse("link ", link, ": capacity ", capacities[link], " B/s: expected positive and finite");
    }
  }
}

void require_rate_limit(double rate_limit) {
  if (!(rate_limit > 0)) refuse("flow: rate limit ", rate_limit, " B/s: expected positive");
}

}  // namespace attnsim
