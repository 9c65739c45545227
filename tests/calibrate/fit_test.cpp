#include "calibrate/fit.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace attnsim {
namespace fit_test {

using testing::ElementsAre;

/// Rows 1, x.
Eigen::MatrixXd line(const std::vector<double>& x) {
  Eigen::MatrixXd a(static_cast<Eigen::Index>(x.size()), 2);
  for (Eigen::Index i = 0; i < a.rows(); ++i) a.row(i) << 1, x[static_cast<std::size_t>(i)];
  return a;
}

TEST(robust_fit, a_line_in_spite_of_an_outlier) {
  const std::vector<double> x{1, 2, 4, 8, 16, 32, 64};
  Eigen::VectorXd b(7);
  for (Eigen::Index i = 0; i < 7; ++i) b[i] = 3 + 2 * x[static_cast<std::size_t>(i)];
  b[3] *= 5;
  const auto fit = robust_fit(line(x), b);
  EXPECT_NEAR(fit.parameters[0], 3, 0.01);
  EXPECT_NEAR(fit.parameters[1], 2, 0.01);
  EXPECT_THAT(outliers(fit), ElementsAre(3));
  EXPECT_NEAR(fit.residuals[3], -0.8, 0.01);
  EXPECT_THAT(fit.identifiable, ElementsAre(true, true));
}

// The best line through 1, 4, 7 over 1, 2, 3 starts at -2.
TEST(robust_fit, no_parameter_is_negative) {
  const auto fit = robust_fit(line({1, 2, 3}), Eigen::Vector3d(1, 4, 7));
  EXPECT_EQ(fit.parameters[0], 0);
  EXPECT_GT(fit.parameters[1], 1);
}

TEST(robust_fit, says_what_the_data_do_not_tell) {
  const auto fit = robust_fit(line({5, 5, 5}), Eigen::Vector3d(10, 10, 10));
  EXPECT_THAT(fit.identifiable, ElementsAre(false, false));
}

TEST(robust_fit, left_out_residuals_are_those_of_fits_to_the_others) {
  const std::vector<double> x{1, 2, 4, 8, 16, 32, 64};
  Eigen::VectorXd b(7);
  for (Eigen::Index i = 0; i < 7; ++i)
    b[i] = (3 + 2 * x[static_cast<std::size_t>(i)]) * (i % 2 == 0 ? 1.01 : 0.99);
  const auto a = line(x);
  const auto fit = robust_fit(a, b);
  for (Eigen::Index left = 0; left < 7; ++left) {
    std::vector<Eigen::Index> others;
    for (Eigen::Index i = 0; i < 7; ++i) {
      if (i != left) others.push_back(i);
    }
    const auto without = robust_fit(a(others, Eigen::all), b(others));
    EXPECT_NEAR(fit.left_out[static_cast<std::size_t>(left)],
                a.row(left).dot(without.parameters) / b[left] - 1, 1e-3);
  }
  EXPECT_GT(std::abs(fit.left_out[0]), 1.5 * std::abs(fit.residuals[0]));
}

}  // namespace fit_test
}  // namespace attnsim
