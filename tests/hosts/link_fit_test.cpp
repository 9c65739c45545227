#include "tests/hosts/link_fit.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace attnsim::hosts {
namespace link_fit_test {

transfer at(std::int64_t size, double time) {
  return {byte_count(size), seconds(time)};
}

TEST(link_fit, returns_the_line_its_samples_lie_on) {
  // 10 us + n / (25 MB/s)
  const auto fit = fit_link({at(0, 10e-6), at(25000, 1010e-6), at(250000, 10010e-6)});
  EXPECT_NEAR(fit.latency.value(), 10e-6, 1e-12);
  EXPECT_NEAR(fit.rate.value(), 25e6, 1);
  EXPECT_LT(fit.worst_error, 1e-9);
}

TEST(link_fit, weighs_relative_errors_alike) {
  // Two times at each size, (1 +- d) t: weight 1/t^2 makes the fit of one size t (1 - d^2) / (1 +
  // d^2), whatever its t, so latency and seconds per byte shrink by that same factor.
  const double d = 0.1, shrink = (1 - d * d) / (1 + d * d);
  const auto fit = fit_link({at(0, 1e-5 * (1 + d)), at(0, 1e-5 * (1 - d)),
                             at(1000000, 1.00001 * (1 + d)), at(1000000, 1.00001 * (1 - d))});
  EXPECT_NEAR(fit.latency.value(), 1e-5 * shrink, 1e-11);
  EXPECT_NEAR(fit.rate.value(), 1e6 / shrink, 1);
  EXPECT_NEAR(fit.worst_error, 1 - shrink / (1 + d), 1e-6);
}

TEST(link_fit, refuses_what_has_no_line) {
  EXPECT_THROW(fit_link({}), std::invalid_argument);
  EXPECT_THROW(fit_link({at(8, 1e-5), at(8, 2e-5)}), std::invalid_argument);
  EXPECT_THROW(fit_link({at(0, 1e-5), at(8, 0)}), std::invalid_argument);
  EXPECT_THROW(fit_link({at(0, 2e-5), at(8, 1e-5)}), std::invalid_argument);
}

}  // namespace link_fit_test
}  // namespace attnsim::hosts
