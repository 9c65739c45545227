#include "model/cost/matmul.hpp"

#include <algorithm>
#include <cmath>

namespace attnsim {
namespace {

bool has_fp8(const device_profile& d, product_type type) {
  return type == product_type::fp8 && d.peak_fp8 > flop_rate();
}

/// Sides of tiles that are tried, over those of the profile's.
constexpr double heights[] = {0.5, 1, 1.5, 2}, widths[] = {0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1};
/// What reading operands adds to a loop of the profile's tile; it grows as a tile's edge over its area.
constexpr double reading = 0.04;

/// With tiles of rows x cols.
double computing(const device_profile& d, const matrix_product& p, product_type type, double rows,
                 double cols) {
  const double tiles = p.count * std::ceil(p.rows / rows) * std::ceil(p.cols / cols);
  const double waves = std::ceil(tiles / d.multiprocessors);
  constexpr double half = 2;
  const double depth = d.matmul.depth * p.result_bytes / half * (has_fp8(d, type) ? 2 : 1);
  const double edges = (1 / rows + 1 / cols) / (1.0 / d.matmul.rows + 1.0 / d.matmul.cols);
  const double tile = 2 * rows * cols * (p.inner * (1 + reading * (edges - 1)) + depth);
  return waves * tile * d.multiprocessors / highest_product_rate(d, type).value();
}

}  // namespace

flop_rate highest_product_rate(const device_profile& d, product_type type) {
  return has_fp8(d, type) ? d.matmul.fp8 * d.peak_fp8 : d.matmul.half * d.peak_half;
}

seconds product_time(const device_profile& d, const matrix_product& p, product_type type) {
  if (p.rows <= 0 || p.cols <= 0 || p.inner <= 0 || p.count <= 0) return {};
  double compute = computing(d, p, type, d.matmul.rows, d.matmul.cols);
  for (const double height : heights) {
    for (const double width : widths) {
      if (height * width <= 1)
        compute = std::min(compute, computing(d, p, type, std::ceil(height * d.matmul.rows),
                                              std::ceil(width * d.matmul.cols)));
    }
  }
  const double element = has_fp8(d, type) ? 1 : 2;
  const double bytes = p.count * (element * (p.rows * p.inner + p.inner * p.cols) +
                                  p.result_bytes * p.rows * p.cols);
  const double moving = bytes / (d.memory_bandwidth.value() * d.memory_efficiency);
  return d.kernel_launch + seconds(std::max(compute, moving));
}

seconds time_from_idle(const matmul_profile& m, seconds settled) {
  return settled - std::min(settled / m.boost, m.boost_time) * (m.boost - 1);
}

}  // namespace attnsim
