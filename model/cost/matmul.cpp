#include "model/cost/matmul.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnsim {
namespace {

bool has_fp8(const device_profile& d, product_type type) {
  return type == product_type::fp8 && d.peak_fp8 > flop_rate();
}

/// Sides of tiles that are tried, over those of the profile's.
constexpr double heights[] = {0.5, 1, 1.5, 2}, widths[] = {0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1};
/// Least numbers multiplied for each loaded, over those of the profile's tile, that keep a multiprocessor busy.
constexpr double fed = 0.6;
constexpr int most_sharing = 8;

/// Of multiprocessors that have all the card's power, over the one they sustain together.
constexpr double alone = 1.41421356237;  // sqrt(2): waves and operations count alike

double memory_rate(const device_profile& d) {
  return d.memory_bandwidth.value() * d.memory_efficiency;
}

double tiles_of(const matrix_product& p, double rows, double cols) {
  return p.count * std::ceil(p.rows / rows) * std::ceil(p.cols / cols);
}

/// With tiles of rows x cols, each of which so many multiprocessors share.
double computing(const device_profile& d, const matrix_product& p, product_type type, double rows,
                 double cols, int sharing) {
  const double tiles = tiles_of(p, rows, cols);
  const double waves = std::ceil(sharing * tiles / d.multiprocessors);
  const double usual = static_cast<double>(d.matmul.rows) * d.matmul.cols;
  const double loads = (rows + cols) / (d.matmul.rows + d.matmul.cols) * usual;
  const double rate = alone * highest_product_rate(d, type).value();
  const double one = 2 * d.multiprocessors / rate;
  const double begin = one * usual * d.matmul.depth * (has_fp8(d, type) ? 2 : 1);
  const double wave = one * std::max(rows * cols, fed * loads) * p.inner / sharing + begin;
  const double operations = 2 * tiles * rows * cols * p.inner;
  const double results = p.count * p.result_bytes * p.rows * p.cols;
  const double sums = sharing * sizeof(float) * p.count * p.rows * p.cols;
  return std::hypot(d.kernel_launch.value() + begin + waves * wave,
                    operations / rate + results / memory_rate(d)) +
         (sharing > 1 ? d.kernel_launch.value() + 2 * sums / memory_rate(d) : 0);
}

/// With tiles of rows x cols, shared where some multiprocessors would have none.
double computing(const device_profile& d, const matrix_product& p, product_type type, double rows,
                 double cols) {
  double least = computing(d, p, type, rows, cols, 1);
  for (int sharing = 2; sharing <= most_sharing; sharing *= 2) {
    if (sharing * tiles_of(p, rows, cols) > d.multiprocessors) break;
    least = std::min(least, computing(d, p, type, rows, cols, sharing));
  }
  return least;
}

}  // namespace

flop_rate highest_product_rate(const device_profile& d, product_type type) {
  return has_fp8(d, type) ? d.matmul.fp8 * d.peak_fp8 : d.matmul.half * d.peak_half;
}

seconds product_time(const device_profile& d, const matrix_product& p, product_type type) {
  if (p.rows <= 0 || p.cols <= 0 || p.inner <= 0 || p.count <= 0) return {};
  double compute = std::numeric_limits<double>::infinity();
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
  return std::max(seconds(compute), d.kernel_launch + seconds(bytes / memory_rate(d)));
}

seconds time_from_idle(const matmul_profile& m, seconds settled) {
  return settled - std::min(settled / m.boost, m.boost_time) * (m.boost - 1);
}

}  // namespace attnsim
