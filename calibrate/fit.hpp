// Robust least squares: weighted linear fits whose outliers lose their weight.
#pragma once

#include <Eigen/Dense>
#include <vector>

namespace attnsim {

struct linear_fit {
  Eigen::VectorXd parameters;
  std::vector<double> residuals;   ///< (fitted - measured) / measured
  std::vector<double> left_out;    ///< the same of a fit, with these weights, to all others
  std::vector<bool> identifiable;  ///< by parameter: false where the data hardly move it
  double deviation =
      0;  ///< robust standard deviation of the residuals (1.4826 x median of their sizes)
};

/// Minimises the sum of rho((a x - b) / b), Huber's rho with its bend at 1.345 deviations (Huber, Robust Statistics, 1981,
/// ch. 7), by iterated weighting; parameters are at least zero (those that would be negative are fixed there). Rows of `a`
/// are observations, b > 0. Precondition: at least one observation.
linear_fit robust_fit(const Eigen::MatrixXd& a, const Eigen::VectorXd& b);

/// The observations whose residual is beyond `deviations` deviations and beyond `least`.
std::vector<std::size_t> outliers(const linear_fit&, double deviations = 4, double least = 0.05);

}  // namespace attnsim
