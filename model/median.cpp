#include "model/median.hpp"

#include <algorithm>
#include <boost/math/statistics/univariate_statistics.hpp>
#include <cmath>

namespace attnsim {

double median(std::vector<double> values) {
  return boost::math::statistics::median(values);
}

double quantile(std::vector<double> values, double share) {
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), below, values.end());
  const auto above = std::min_element(below + 1, values.end());
  return above == values.end() ? *below : std::lerp(*below, *above, place - std::floor(place));
}

}  // namespace attnsim
