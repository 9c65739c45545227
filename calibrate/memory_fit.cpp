// Launch gap, and shares of the memory's and the cache's bandwidth.
#include "calibrate/fitting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/error.hpp"

namespace attnsim {
namespace {

/// From the largest.
void fit_delta(fitting& f, const std::vector<std::pair<double, double>>& points) {
  if (points.empty()) return f.kept("delta efficiency", "not measured");
  const auto [bytes, time] = *std::max_element(points.begin(), points.end());
  const double moving = std::max(time - f.profile().kernel_launch.value(), 0.1 * time);
  f.profile().delta_efficiency =
      std::min(1.0, bytes / moving / f.profile().memory_bandwidth.value());
  f.fitted("delta efficiency", fmt::format("{:.3f}", f.profile().delta_efficiency), 1);
}

}  // namespace

void fit_memory(fitting& f) {
  std::vector<std::pair<double, double>> points, deltas;  // bytes, seconds
  std::vector<std::string> names;
  f.each<memory_point>([&](const auto& p, const auto& m, const auto&) {
    const std::pair measured(static_cast<double>(memory_traffic(p)), m.median());
    if (p.operation == "delta") return deltas.push_back(measured);
    points.push_back(measured);
    names.push_back(describe(p));
  });
  if (points.size() < 3) return f.kept("memory efficiency, kernel launch", "no memory operations");
  const auto& device = f.profile();
  const auto beyond = [&](const auto& p) {
    const byte_count traffic(static_cast<std::int64_t>(p.first));
    return static_cast<double>(device.beyond_cache(traffic).value());
  };
  const auto in_cache =
      std::count_if(points.begin(), points.end(), [&](const auto& p) { return beyond(p) == 0; });
  Eigen::MatrixXd a =
      Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(points.size()), in_cache > 0 ? 3 : 2);
  Eigen::VectorXd b(a.rows());
  for (Eigen::Index i = 0; i < a.rows(); ++i) {
    const auto& point = points[static_cast<std::size_t>(i)];
    a(i, 0) = 1;
    a(i, 1) = beyond(point) / device.memory_bandwidth.value();
    if (in_cache > 0) a(i, 2) = (point.first - beyond(point)) / device.memory_bandwidth.value();
    b[i] = point.second;
  }
  const auto fit = robust_fit(a, b);
  const double efficiency = 1 / fit.parameters[1];
  if (efficiency > 1) {
    throw input_error(
        "memory operations", fmt::format("{:.2f} of the peak", efficiency),
        "expected at most the memory's bandwidth; all tensors may have been in the cache");
  }
  f.profile().kernel_launch = seconds(fit.parameters[0]);
  f.profile().memory_efficiency = efficiency;
  f.fitted("kernel launch", to_string(f.profile().kernel_launch), points.size());
  f.fitted("memory efficiency", fmt::format("{:.3f}", efficiency), points.size(),
           ", residuals " + percent(fit.deviation));
  fit_delta(f, deltas);
  std::vector<double> sizes;
  for (const double r : fit.residuals) sizes.push_back(std::abs(r));
  f.profile().uncertainty.memory = interval_of(sizes);
  f.fitted("uncertainty of memory operations", percent(f.profile().uncertainty.memory),
           points.size());
  if (in_cache > 0) {
    f.profile().cache_bandwidth = f.profile().memory_bandwidth * (1 / fit.parameters[2]);
    f.fitted("cache bandwidth", to_string(f.profile().cache_bandwidth),
             static_cast<std::size_t>(in_cache));
  }
  f.name_outliers(fit, names);
}

}  // namespace attnsim
