// The share of the peak that matrix products reach, which differs from card to card, and the tile and depth of cost/matmul.hpp, which
// are the chip's and cuBLASLt's: a profile's that were measured stay unless others are clearly less off.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "calibrate/fitting.hpp"
#include "calibrate/predicted.hpp"
#include "model/error.hpp"
#include "model/median.hpp"

namespace attnsim {
namespace {

struct measured_product {
  matrix_product what;
  double time = 0;  ///< seconds
  std::string name;
};

double relative_error(const device_profile& d, const measured_product& p) {
  return product_time(d, p.what, product_type::half).value() / p.time - 1;
}

double share_of_peak(const device_profile& d, const measured_product& p) {
  return p.what.operations().value() / p.time / d.peak_half.value();
}

/// Throws attnsim::input_error: then the product did not run, or the device is another.
void require_below_peak(const device_profile& d, const measured_product& p) {
  const double share = share_of_peak(d, p);
  if (share > 1)
    throw input_error("matrix products", fmt::format("{}: {:.2f} of the peak", p.name, share),
                      "expected at most the device's peak");
}

double mean_error(const device_profile& d, const std::vector<measured_product>& all) {
  double sum = 0;
  for (const auto& p : all) sum += std::abs(relative_error(d, p));
  return sum / static_cast<double>(all.size());
}

/// Of cuBLASLt's kernels, or of what a host's processors keep in registers.
std::vector<std::pair<int, int>> tiles_of(const device_profile& d) {
  constexpr int most_of_host = 8;
  if (d.multiprocessors > most_of_host) return {{128, 256}, {128, 128}, {256, 128}};
  return {{64, 64}, {16, 16}};
}

/// Of the error with the profile's tile and depth, what others must stay below. On four H200 whichever was fitted with a depth of its own
/// predicted the others worse.
constexpr double clearly_less = 0.8;

constexpr double depths[] = {0, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 384, 512};

/// The rate after a pause over the settled one, and how long it lasts: later_s began with it.
void fit_boost(fitting& f) {
  constexpr double begins = 35e-3, lasts = 30e-3, long_enough = 200e-6;
  std::vector<double> boosts, shares;
  f.each<product_point>([&](const auto&, const auto& m, const auto&) {
    if (!m.samples.contains("start_s") || m.median() < long_enough) return;
    const double settled = m.median(), start = m.median("start_s"), later = m.median("later_s");
    boosts.push_back(settled / start);
    if (settled > 1.01 * start) shares.push_back((settled - later) / (settled - start));
  });
  if (boosts.empty()) return f.kept("boost of products", "no samples after a pause");
  auto& m = f.profile().matmul;
  m.boost = std::max(1.0, median(boosts));
  const double share = shares.empty() ? 0 : std::clamp(median(shares), 0.0, 1.0);
  m.boost_time = m.boost > 1 ? seconds(begins + share * lasts) : seconds();
  f.fitted("boost of products",
           fmt::format("{:.3f} for {:.0f} ms", m.boost, 1e3 * m.boost_time.value()), boosts.size());
}

/// The share of the peak with which `tried` is least off, and how far it then is. Sought from half of what a product reached, by steps of
/// 4 %, then of 0.5 %.
std::pair<double, double> best_share(device_profile tried,
                                     const std::vector<measured_product>& all) {
  std::pair<double, double> best{0, std::numeric_limits<double>::infinity()};
  const auto look = [&](double share) {
    tried.matmul.half = std::min(share, 1.0);
    const double error = mean_error(tried, all);
    if (error < best.second) best = {tried.matmul.half, error};
  };
  double reached = 0;
  for (const auto& p : all) reached = std::max(reached, share_of_peak(tried, p));
  // Tiles of which products fill little count as much more than they reach.
  constexpr double below = 2, above = 50, coarse = 1.04, fine = 1.005;
  const double highest = std::min(coarse, above * reached);
  for (double share = reached / below; share < highest; share *= coarse) look(share);
  const double around = best.first;
  for (double share = around / coarse; share < around * coarse; share *= fine) look(share);
  return best;
}

}  // namespace

void fit_products(fitting& f) {
  std::vector<measured_product> all;
  f.each<product_point>([&](const auto& p, const auto& m, const auto&) {
    all.push_back({product_of(p), m.median(), describe(p)});
  });
  if (all.size() < 4) return f.kept("matrix products", "not measured");
  for (const auto& p : all) require_below_peak(f.profile(), p);
  auto& best = f.profile().matmul;
  double least = std::numeric_limits<double>::infinity();
  auto tried = f.profile();
  if (best.assumed.empty()) {
    const auto [share, error] = best_share(tried, all);
    best.half = share;
    least = clearly_less * error;
  }
  for (const auto& [rows, cols] : tiles_of(tried)) {
    for (const double depth : depths) {
      tried.matmul.rows = rows;
      tried.matmul.cols = cols;
      tried.matmul.depth = depth;
      const auto [share, error] = best_share(tried, all);
      if (error >= least) continue;
      least = error;
      best = tried.matmul;
      best.half = share;
    }
  }
  best.assumed.clear();
  std::vector<double> errors;
  for (const auto& p : all) {
    errors.push_back(std::abs(relative_error(f.profile(), p)));
    if (errors.back() > 0.3)
      f.result.outliers.push_back(
          fmt::format("{}: fitted {:+.0f} % off", p.name, 100 * relative_error(f.profile(), p)));
  }
  f.fitted("matmul",
           fmt::format("{:.3f} of the peak, tiles of {} x {}, depth {:.0f}", best.half, best.rows,
                       best.cols, best.depth),
           all.size(), ", residuals " + percent(median(errors)));
  fit_boost(f);
}

}  // namespace attnsim
