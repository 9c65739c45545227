#include "model/cost/clocks.hpp"

#include <algorithm>
#include <cmath>

namespace attnsim {
namespace {

constexpr double lowest_clock = 0.1;

/// Beyond what is taken idle.
watts dynamic_power(const power_profile& p, watts full, double clock) {
  return (full - p.idle) * (clock * clock * clock);
}

}  // namespace

double own_clock(const power_profile& p, watts full, double shared) {
  if (full <= p.brake) return shared;
  return std::min(shared, std::cbrt((p.brake - p.idle) / (full - p.idle)));
}

double slowdown_at(const power_profile& p, watts full, double shared) {
  return own_clock(p, full) / own_clock(p, full, shared);
}

double shared_clock(const power_profile& p, std::span<const powered_time> kernels,
                    seconds memory_bound) {
  const auto within_limit = [&](double clock) {
    double spare = (p.limit - p.memory).value() * memory_bound.value();  // joules
    for (const auto& k : kernels) {
      const auto power = p.idle + dynamic_power(p, k.full, own_clock(p, k.full, clock));
      spare += (p.limit - power).value() * k.time.value() * slowdown_at(p, k.full, clock);
    }
    return spare >= 0;
  };
  if (within_limit(1)) return 1;
  double low = lowest_clock, high = 1;
  constexpr int halvings = 40;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (within_limit(middle) ? low : high) = middle;
  }
  return low;
}

double products_slowdown_alone(const power_profile& p) {
  if (!p.present()) return 1;
  const powered_time alone[] = {{p.products, seconds(1)}};
  return slowdown_at(p, p.products, shared_clock(p, alone));
}

}  // namespace attnsim
