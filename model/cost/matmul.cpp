#include "model/cost/matmul.hpp"

#include <algorithm>
#include <cmath>

namespace attnsim {
namespace {

bool has_fp8(const device_profile& d, product_type type) {
  return type == product_type::fp8 && d.peak_fp8 > flop_rate();
}

/// With tiles `narrow` times narrower than the profile's and loops in `parts`.
double computing(const device_profile& d, const matrix_product& p, product_type type, int narrow,
                 int parts) {
  const double rows = d.matmul.rows, cols = static_cast<double>(d.matmul.cols) / narrow;
  const double tiles = parts * p.count * std::ceil(p.rows / rows) * std::ceil(p.cols / cols);
  const double waves = std::ceil(tiles / d.multiprocessors);
  constexpr double half = 2;
  const double depth = d.matmul.depth * p.result_bytes / half * (has_fp8(d, type) ? 2 : 1);
  const double tile = 2 * rows * cols * (p.inner / parts + depth);
  return waves * tile * d.multiprocessors / highest_product_rate(d, type).value();
}

}  // namespace

flop_rate highest_product_rate(const device_profile& d, product_type type) {
  return has_fp8(d, type) ? d.matmul.fp8 * d.peak_fp8 : d.matmul.half * d.peak_half;
}

seconds product_time(const device_profile& d, const matrix_product& p, product_type type) {
  if (p.rows <= 0 || p.cols <= 0 || p.inner <= 0 || p.count <= 0) return {};
  double compute = computing(d, p, type, 1, 1);
  for (const int narrow : {1, 2, 4}) {
    for (const int parts : {1, 2})
      compute = std::min(compute, computing(d, p, type, narrow, parts));
  }
  const double element = has_fp8(d, type) ? 1 : 2;
  const double bytes = p.count * (element * (p.rows * p.inner + p.inner * p.cols) +
                                  p.result_bytes * p.rows * p.cols);
  const double moving = bytes / (d.memory_bandwidth.value() * d.memory_efficiency);
  return d.kernel_launch + seconds(std::max(compute, moving));
}

}  // namespace attnsim
