// Predicted and measured, from parts to wholes, so that errors of one can't hide in those of another: kernels, memory
// operations, transfers (send/recv, all-to-all), collectives, overlap, schedules.
#pragma once

#include <string>
#include <vector>

#include "model/units.hpp"

namespace attnsim {

struct compared_point {
  std::string part;
  std::string what;
  seconds predicted;
  seconds low, high;  ///< the prediction's 90 % interval
  seconds measured;

  double error() const { return (predicted - measured) / measured; }
  bool inside() const { return low <= measured && measured <= high; }
};

/// The interval is the prediction, less and more a share of it.
compared_point compared(std::string part, std::string what, seconds predicted, double uncertainty,
                        seconds measured);

struct part_errors {
  std::string part;
  std::size_t points = 0;
  double median = 0, percentile_95 = 0;  ///< of the sizes of the errors
  double inside = 0;                     ///< share of points in their interval
  compared_point worst;
};

/// In order of their parts' first points.
std::vector<part_errors> errors_by_part(const std::vector<compared_point>&);

}  // namespace attnsim
