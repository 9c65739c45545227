#include "model/cost/matmul.hpp"

#include <algorithm>
#include <cmath>

namespace attnsim {
namespace {

bool has_fp8(const device_profile& d, product_type type) {
  return type == product_type::fp8 && d.peak_fp8 > flop_rate();
}

/// With tiles `narrow` times narrower than the profile's.
double computing(const device_profile& d, const matrix_product& p, flop_rate highest,
                 double narrow) {
  const double rows = d.matmul.rows, cols = d.matmul.cols / narrow;
  const double loads = (1 / rows + 1 / cols) / (1 / rows + 1.0 / d.matmul.cols);
  const double slower = (1 + loads) / 2;
  const double tiles = p.count * std::ceil(p.rows / rows) * std::ceil(p.cols / cols);
  const double waves = std::ceil(tiles / d.multiprocessors);
  const double tile = 2 * rows * cols * (p.inner + d.matmul.depth) * slower;
  return waves * tile * d.multiprocessors / highest.value();
}

}  // namespace

flop_rate highest_product_rate(const device_profile& d, product_type type) {
  return has_fp8(d, type) ? d.matmul.fp8 * d.peak_fp8 : d.matmul.half * d.peak_half;
}

seconds product_time(const device_profile& d, const matrix_product& p, product_type type) {
  if (p.rows <= 0 || p.cols <= 0 || p.inner <= 0 || p.count <= 0) return {};
  const auto highest = highest_product_rate(d, type);
  double compute = computing(d, p, highest, 1);
  for (const double narrow : {2.0, 4.0})
    compute = std::min(compute, computing(d, p, highest, narrow));
  const double element = has_fp8(d, type) ? 1 : 2;
  const double bytes = p.count * (element * (p.rows * p.inner + p.inner * p.cols) +
                                  p.result_bytes * p.rows * p.cols);
  const double moving = bytes / (d.memory_bandwidth.value() * d.memory_efficiency);
  return d.kernel_launch + seconds(std::max(compute, moving));
}

}  // namespace attnsim
