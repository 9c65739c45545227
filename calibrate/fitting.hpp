// What the parts of a calibration share: what was measured, the profile as far as it is fitted, and what is said about it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/calibration.hpp"
#include "calibrate/fit.hpp"

namespace attnsim {

class fitting {
 public:
  /// References are kept.
  fitting(const device_profile& before, const std::vector<measurement_set>& measured,
          const std::vector<log_set>& read)
      : prior(before), sets(measured), logs(read) {
    result.profile = prior;
  }

  device_profile& profile() { return result.profile; }
  /// What a set was measured on (`on`, which it must have), with what is fitted by now.
  cluster measured_on(const measurement_set& set) const {
    auto on = *set.on;
    on.device = result.profile;
    return on;
  }
  /// The profile's kernel of a measurement's, a new one where there is none.
  kernel_profile& kernel(const std::string& measured);

  void fitted(std::string_view name, const std::string& value, std::size_t points,
              const std::string& rest = "");
  void kept(std::string_view name, std::string_view why);
  void name_outliers(const linear_fit&, const std::vector<std::string>& names);

  /// Every point of a kind that has samples, with its measurement and the set it is from.
  template <typename Point, typename Use>
  void each(const Use& use) const {
    for (const auto& set : sets) {
      for (const auto& m : set.data.points) {
        const auto* point = std::get_if<Point>(&m.what);
        if (point && m.rounds() > 0) use(*point, m, set);
      }
    }
  }

  const device_profile& prior;
  const std::vector<measurement_set>& sets;
  const std::vector<log_set>& logs;
  calibration result;
  /// Sizes, relative; kernels' by laws of the other shapes.
  std::vector<double> kernel_residuals, transfer_residuals, overlap_residuals;
};

void fit_memory(fitting&);
void fit_kernels(fitting&);
void fit_products(fitting&);
void fit_elementwise(fitting&);
void fit_transports(fitting&);
/// Runs from idle; after the others.
void fit_launches(fitting&);
/// Both at once, and clocks of runs from idle; after all others.
void fit_interference(fitting&);

/// The half-width within which 90 % of the residuals lie, at least 1 %.
double interval_of(const std::vector<double>& residuals);

}  // namespace attnsim
