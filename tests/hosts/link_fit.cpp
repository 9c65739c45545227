#include "tests/hosts/link_fit.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace attnsim::hosts {

link_fit fit_link(const std::vector<transfer>& transfers) {
  double w = 0, wn = 0, wnn = 0, wt = 0,
         wnt = 0;  // sums of weight 1/t^2 times powers of size n and time t
  for (const auto& [size, time] : transfers) {
    const double n = static_cast<double>(size.value()), t = time.value();
    if (!(t > 0)) throw std::invalid_argument("link fit: a transfer time is not positive");
    const double weight = 1 / (t * t);
    w += weight;
    wn += weight * n;
    wnn += weight * n * n;
    wt += weight * t;
    wnt += weight * n * t;
  }
  const double determinant = w * wnn - wn * wn;
  if (!(determinant > 1e-12 * w * wnn))
    throw std::invalid_argument("link fit: transfers of two sizes are needed");
  const double seconds_per_byte = (w * wnt - wn * wt) / determinant;
  if (!(seconds_per_byte > 0))
    throw std::invalid_argument("link fit: times do not grow with the size");

  link_fit fit{.latency = seconds((wt - seconds_per_byte * wn) / w),
               .rate = bandwidth(1 / seconds_per_byte)};
  for (const auto& [size, time] : transfers)
    fit.worst_error = std::max(fit.worst_error, std::abs(fit.time(size) / time - 1));
  return fit;
}

}  // namespace attnsim::hosts
