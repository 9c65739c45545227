// One unknown fitted to one figure.
#pragma once

#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>

namespace attnsim::reproduce {

/// The x from low to high (positive, both) at which the falling f is zero, to about 0.1 %; the end nearer to zero if f has
/// one sign throughout.
template <typename F>
double solve_falling(F f, double low, double high) {
  const auto of_log = [&](double log_x) { return f(std::exp(log_x)); };
  const double at_low = f(low), at_high = f(high);
  if (at_low <= 0) return low;
  if (at_high >= 0) return high;
  std::uintmax_t most_calls = 30;
  const auto close = [](double a, double b) { return std::abs(a - b) < 1e-3; };
  const auto [from, to] = boost::math::tools::toms748_solve(of_log, std::log(low), std::log(high),
                                                            at_low, at_high, close, most_calls);
  return std::exp((from + to) / 2);
}

}  // namespace attnsim::reproduce
