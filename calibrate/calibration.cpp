#include "calibrate/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/fitting.hpp"
#include "calibrate/predicted.hpp"
#include "model/error.hpp"
#include "model/median.hpp"

namespace attnsim {
namespace {

void fit_intervals(fitting& f) {
  auto& u = f.profile().uncertainty;
  if (!f.kernel_residuals.empty()) u.compute = interval_of(f.kernel_residuals);
  if (!f.transfer_residuals.empty()) u.communication = interval_of(f.transfer_residuals);
  if (!f.overlap_residuals.empty()) u.overlap = interval_of(f.overlap_residuals);
  f.fitted("uncertainty",
           fmt::format("{} of compute, {} of communication", percent(u.compute),
                       percent(u.communication)),
           f.kernel_residuals.size() + f.transfer_residuals.size());
}

}  // namespace

kernel_profile& fitting::kernel(const std::string& measured) {
  for (auto& k : profile().kernels) {
    if (k.name == measured) return k;
  }
  profile().kernels.push_back({.name = measured});
  return profile().kernels.back();
}

void fitting::fitted(std::string_view name, const std::string& value, std::size_t points,
                     const std::string& rest) {
  result.fitted.push_back(fmt::format("{}: {} from {} points{}", name, value, points, rest));
}

void fitting::kept(std::string_view name, std::string_view why) {
  result.kept.push_back(fmt::format("{}: {}", name, why));
}

void fitting::name_outliers(const linear_fit& fit, const std::vector<std::string>& names) {
  for (const auto i : outliers(fit)) {
    result.outliers.push_back(
        fmt::format("{}: fitted {:+.0f} % off", names[i], 100 * fit.residuals[i]));
  }
}

double interval_of(const std::vector<double>& residuals) {
  constexpr double share = 0.9, least = 0.01;
  return std::max(least, quantile(residuals, share));
}

calibration calibrate(const device_profile& prior, const std::vector<measurement_set>& sets,
                      const std::vector<log_set>& logs) {
  if (sets.empty() && logs.empty())
    throw input_error("nothing to fit to: expected measurements or nccl-tests logs");
  fitting f(prior, sets, logs);
  fit_memory(f);
  fit_kernels(f);
  fit_products(f);
  fit_elementwise(f);
  fit_transports(f);
  fit_launches(f);
  fit_interference(f);
  fit_intervals(f);
  return std::move(f.result);
}

}  // namespace attnsim
