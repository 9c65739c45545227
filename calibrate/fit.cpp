#include "calibrate/fit.hpp"

#include <algorithm>
#include <cmath>

#include "calibrate/measurements.hpp"
#include "model/median.hpp"

namespace attnsim {
namespace {

constexpr double bend = 1.345;     // of Huber's rho, in deviations
constexpr double smallest = 1e-4;  // deviation
constexpr int most_rounds = 20;
constexpr double hardly_moves = 1e-6;  // relative singular value
constexpr double decides = 0.99;       // leverage: beyond, a parameter rests on one observation

double robust_deviation(std::vector<double> residuals) {
  for (auto& r : residuals) r = std::abs(r);
  return std::max(smallest, 1.4826 * median(std::move(residuals)));
}

/// Of A^T A, which has as many rows as there are parameters: its singular values are the squares of A's, its vectors those of
/// A. Columns of length one keep the squares apart; a direction below 1e-8 of the longest counts as none. Without the QR of a
/// tall matrix, which alone takes 10 s to compile.
using normal_svd = Eigen::JacobiSVD<Eigen::MatrixXd, Eigen::NoQRPreconditioner>;
normal_svd svd_of_normal_matrix(const Eigen::MatrixXd& a) {
  const Eigen::MatrixXd normal = a.transpose().lazyProduct(a);
  return normal_svd(normal, Eigen::ComputeFullU | Eigen::ComputeFullV);
}

/// With the parameters that `free` names; the others stay zero.
Eigen::VectorXd solve(const Eigen::MatrixXd& a, const Eigen::VectorXd& weights,
                      std::vector<bool>& free) {
  Eigen::VectorXd x = Eigen::VectorXd::Zero(a.cols());
  while (true) {
    std::vector<Eigen::Index> columns;
    for (Eigen::Index j = 0; j < a.cols(); ++j) {
      if (free[static_cast<std::size_t>(j)]) columns.push_back(j);
    }
    if (columns.empty()) return x;
    const Eigen::MatrixXd part = weights.asDiagonal() * a(Eigen::all, columns);
    const Eigen::VectorXd y = svd_of_normal_matrix(part).solve(
        part.transpose() * weights);  // relative: b is one everywhere
    Eigen::Index lowest = 0;
    if (y.minCoeff(&lowest) >= 0) {
      for (std::size_t k = 0; k < columns.size(); ++k)
        x[columns[k]] = y[static_cast<Eigen::Index>(k)];
      return x;
    }
    free[static_cast<std::size_t>(columns[static_cast<std::size_t>(lowest)])] = false;
  }
}

/// What each observation adds to its own fitted value: the diagonal of the hat matrix (Belsley, Kuh and Welsch, Regression
/// Diagnostics, 1980, ch. 2), of the parameters that are not fixed at zero.
Eigen::VectorXd leverages(const Eigen::MatrixXd& a, const Eigen::VectorXd& weights,
                          const Eigen::VectorXd& x) {
  std::vector<Eigen::Index> columns;
  for (Eigen::Index j = 0; j < x.size(); ++j) {
    if (x[j] > 0) columns.push_back(j);
  }
  if (columns.empty()) return Eigen::VectorXd::Zero(a.rows());
  const Eigen::MatrixXd part = weights.asDiagonal() * a(Eigen::all, columns);
  const Eigen::MatrixXd own = svd_of_normal_matrix(part).solve(part.transpose());
  return part.cwiseProduct(own.transpose()).rowwise().sum();
}

}  // namespace

linear_fit robust_fit(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  const Eigen::MatrixXd relative = b.cwiseInverse().asDiagonal() * a;
  const Eigen::VectorXd scale = relative.colwise().norm().cwiseMax(1e-300).transpose();
  const Eigen::MatrixXd scaled = relative * scale.cwiseInverse().asDiagonal();
  Eigen::VectorXd weights = Eigen::VectorXd::Ones(a.rows());
  linear_fit fit;
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<bool> free(static_cast<std::size_t>(a.cols()), true);
    const Eigen::VectorXd x = solve(scaled, weights, free);
    const bool settled = round > 0 && (x - fit.parameters).norm() <= 1e-6 * x.norm();
    fit.parameters = x;
    const Eigen::VectorXd r = scaled * x - Eigen::VectorXd::Ones(a.rows());
    fit.residuals.assign(r.begin(), r.end());
    fit.deviation = robust_deviation(fit.residuals);
    for (Eigen::Index i = 0; i < r.size(); ++i)
      weights[i] =
          std::sqrt(std::min(1.0, bend * fit.deviation / std::max(1e-300, std::abs(r[i]))));
    if (settled) break;
  }
  const Eigen::VectorXd own = leverages(scaled, weights, fit.parameters);
  for (Eigen::Index i = 0; i < own.size(); ++i)
    fit.left_out.push_back(fit.residuals[static_cast<std::size_t>(i)] /
                           std::max(1 - decides, 1 - own[i]));
  const auto svd = svd_of_normal_matrix(scaled);
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    bool moved = true;
    for (Eigen::Index k = 0; k < svd.singularValues().size(); ++k) {
      if (svd.singularValues()[k] < hardly_moves * hardly_moves * svd.singularValues()[0] &&
          std::abs(svd.matrixV()(j, k)) > 0.1)
        moved = false;
    }
    fit.identifiable.push_back(moved && a.rows() >= a.cols());
  }
  fit.parameters = fit.parameters.cwiseQuotient(scale);
  return fit;
}

std::vector<std::size_t> outliers(const linear_fit& fit, double deviations, double least) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < fit.residuals.size(); ++i) {
    if (std::abs(fit.residuals[i]) > std::max(least, deviations * fit.deviation)) list.push_back(i);
  }
  return list;
}

}  // namespace attnsim
