#include "ask/part_errors.hpp"

#include <algorithm>
#include <cmath>

#include "model/median.hpp"

namespace attnsim {
namespace {

part_errors summary_of(const std::string& part, const std::vector<compared_point>& points) {
  part_errors s{.part = part};
  std::vector<double> sizes;
  double inside = 0;
  for (const auto& p : points) {
    if (p.part != part) continue;
    if (sizes.empty() || std::abs(p.error()) > std::abs(s.worst.error())) s.worst = p;
    sizes.push_back(std::abs(p.error()));
    inside += p.inside() ? 1 : 0;
  }
  s.points = sizes.size();
  s.median = median(sizes);
  s.percentile_95 = quantile(sizes, 0.95);
  s.inside = inside / static_cast<double>(sizes.size());
  return s;
}

}  // namespace

compared_point compared(std::string part, std::string what, seconds predicted, double uncertainty,
                        seconds measured) {
  return {std::move(part),
          std::move(what),
          predicted,
          predicted * (1 - uncertainty),
          predicted * (1 + uncertainty),
          measured};
}

std::vector<part_errors> errors_by_part(const std::vector<compared_point>& points) {
  std::vector<part_errors> all;
  for (const auto& p : points) {
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const auto& s) { return s.part == p.part; });
    if (!known) all.push_back(summary_of(p.part, points));
  }
  return all;
}

}  // namespace attnsim
