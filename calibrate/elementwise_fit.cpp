// A start and a share of the memory's bandwidth for each of a layer's elementwise operations, of those that the cache does not hold.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "calibrate/fitting.hpp"
#include "model/error.hpp"

namespace attnsim {

void fit_elementwise(fitting& f) {
  constexpr std::size_t least = 3;
  for (int i = 0; i < elementwise_kinds; ++i) {
    const auto kind = static_cast<elementwise_kind>(i);
    std::vector<double> bytes, times;
    std::vector<std::string> names;
    f.each<elementwise_point>([&](const auto& p, const auto& m, const auto&) {
      const byte_count traffic(elementwise_traffic(p));
      if (p.operation != kind || f.profile().beyond_cache(traffic) < traffic) return;
      bytes.push_back(static_cast<double>(traffic.value()));
      times.push_back(m.median());
      names.push_back(describe(p));
    });
    if (bytes.size() < least) {
      if (!bytes.empty()) f.kept(name_of(kind), "too few sizes beyond the cache");
      continue;
    }
    Eigen::MatrixXd a(static_cast<Eigen::Index>(bytes.size()), 2);
    Eigen::VectorXd b(a.rows());
    for (Eigen::Index row = 0; row < a.rows(); ++row) {
      const auto n = static_cast<std::size_t>(row);
      a(row, 0) = 1;
      a(row, 1) = bytes[n] / f.profile().memory_bandwidth.value();
      b[row] = times[n];
    }
    const auto fit = robust_fit(a, b);
    const double efficiency = 1 / fit.parameters[1];
    if (efficiency > 1) {
      throw input_error(std::string(name_of(kind)), fmt::format("{:.2f} of the peak", efficiency),
                        "expected at most the memory's bandwidth");
    }
    f.profile().elementwise[i] = {.efficiency = efficiency, .start = seconds(fit.parameters[0])};
    f.fitted(name_of(kind),
             fmt::format("{:.3f} of the memory's bandwidth after {}", efficiency,
                         to_string(f.profile().elementwise[i].start)),
             bytes.size(), ", residuals " + percent(fit.deviation));
    f.name_outliers(fit, names);
  }
}

}  // namespace attnsim
