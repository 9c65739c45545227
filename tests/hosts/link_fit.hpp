// Latency and bandwidth of a link from measured transfers.
#pragma once

#include <vector>

#include "model/units.hpp"

namespace attnsim::hosts {

struct transfer {
  byte_count size;
  seconds time;
};

/// time(size) = latency + size / rate
struct link_fit {
  seconds latency;
  bandwidth rate;
  double worst_error = 0;  ///< largest |fitted - measured| / measured

  seconds time(byte_count size) const { return latency + size / rate; }
};

/// Least squares of the relative errors, sum ((fitted_i - t_i) / t_i)^2, so that microseconds and
/// seconds weigh alike. std::invalid_argument for fewer than two different sizes, a time that isn't
/// positive, or times that don't grow with the size.
link_fit fit_link(const std::vector<transfer>& transfers);

}  // namespace attnsim::hosts
