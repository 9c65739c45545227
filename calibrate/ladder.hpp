// Predicted and measured, from parts to wholes, so that errors of one can't hide in those of another: kernels, memory
// operations, transfers (send/recv, all-to-all), collectives, overlap, schedules.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measurements.hpp"
#include "model/units.hpp"

namespace attnsim {

struct ladder_point {
  std::string rung;
  std::string what;
  seconds predicted;
  seconds low, high;  ///< the prediction's 90 % interval
  seconds measured;

  double error() const { return (predicted - measured) / measured; }
  bool inside() const { return low <= measured && measured <= high; }
};

struct rung_summary {
  std::string rung;
  std::size_t points = 0;
  double median = 0, percentile_95 = 0;  ///< of the sizes of the errors
  double inside = 0;                     ///< share of points in their interval
  ladder_point worst;
};

/// "kernels", "memory", "transfers", "collectives" or "overlap".
std::string rung_of(const measured_point&);

/// In order of their rungs' first points.
std::vector<rung_summary> summarise(const std::vector<ladder_point>&);

}  // namespace attnsim
