#include "sim/link_use.hpp"

#include <algorithm>
#include <cmath>

#include "sim/refuse.hpp"

namespace attnsim {
namespace {

bool positive_and_finite(double value) {
  return value > 0 && std::isfinite(value);
}

}  // namespace

void merge_uses(std::vector<link_use>& uses) {
  std::stable_sort(uses.begin(), uses.end(),
                   [](const link_use& a, const link_use& b) { return a.link < b.link; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < uses.size(); ++i) {
    if (uses[i].link == uses[kept].link) {
      uses[kept].weight += uses[i].weight;
    } else {
      uses[++kept] = uses[i];
    }
  }
  if (!uses.empty()) uses.resize(kept + 1);
}

std::vector<link_use> merged_path(std::span<const link_use> path, std::size_t links) {
  std::vector<link_use> merged;
  merged.reserve(path.size());
  for (const link_use& use : path) {
    if (use.link >= links) refuse("path: link ", use.link, ": expected a number below ", links);
    if (!positive_and_finite(use.weight)) {
      refuse("path: link ", use.link, ": weight ", use.weight, ": expected positive and finite");
    }
    merged.push_back(use);
  }
  merge_uses(merged);
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
