// Fits a device profile to measurements.
//
//   kernels         a law (device.hpp, kernel_law) for each pass and head dimension: its times are linear, what multiplies
//                   them (tile, slots, grouping, ...) is searched
//   memory          launch gap and share of the memory's bandwidth, over all merges, sums and copies
//   products        share of the peak, tile and depth (cost/matmul.hpp)
//   transports      time = latency + ramp of n + n / rate: the rate from the largest sizes, the latency from the smallest,
//                   the ramp is what is left at each size
//   interference    what a transfer costs the kernel beside it, and which kernels a transfer waits for
//   idle start      the host's launch costs; how much faster kernels are on devices that were idle
//   intervals       90 % of the residuals lie within
// Fits are robust (fit.hpp); points far off are named. What the data don't tell keeps its prior, and is said so.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measurements.hpp"
#include "calibrate/nccl_tests.hpp"
#include "model/cluster/cluster.hpp"

namespace attnsim {

struct measurement_set {
  std::string file;
  measurements data;
  const cluster* on = nullptr;  ///< where the ranks were; null: transfers and overlaps are left out
};

struct log_set {
  std::string file;
  nccl_tests_log log;
  const cluster* on = nullptr;
};

struct calibration {
  device_profile profile;
  std::vector<std::string> fitted;    ///< a line a parameter: value, points, residuals
  std::vector<std::string> kept;      ///< parameters that keep their prior, and why
  std::vector<std::string> outliers;  ///< points far off, and by how much
  std::vector<std::string> warnings;
};

/// Throws input_error: a rate above the device's peak or a link's bandwidth, with the likely cause; nothing to fit to.
calibration calibrate(const device_profile& prior, const std::vector<measurement_set>&,
                      const std::vector<log_set>& = {});

}  // namespace attnsim
