// Takes samples of points (calibrate/measurements.hpp) on the real machine: what `attnsim measure` does.
//
// All points are gone through again and again, one sample each time, so that slow changes of the machine, its clocks
// above all, meet all points alike. All ranks call it together, with the same points.
//
//   kernel, memory   tensors as an executor has them (shard.hpp); warm-up, then calls one behind the other for about a
//                    millisecond; before kernels a pause: a device at its power limit for long is slower (H200: up to 8 %),
//                    and runs of a schedule are short
//   transfer         the ranks' devices start together, right behind a short operation of the same channel
//   overlap          the ranks' hosts start together on idle devices and launch both, as a schedule's start does
//   sequence         likewise, each operation between two events; or behind work that lasts until all are launched
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/measurements.hpp"
#include "validate/transport.hpp"

namespace attnsim::validate {

struct measure_progress {
  std::size_t samples = 0;  ///< taken or found in the points
  std::size_t wanted = 0;
};

struct measure_request {
  std::vector<measurement>& points;  ///< samples are added
  std::size_t rounds = 7;            ///< until each point has so many
  std::function<std::unique_ptr<kernels::backend>(const std::string& kernel)> device;
  std::string transfer_device;  ///< the kernel whose device transfers and memory operations run on
  std::function<bool()> stops = [] { return false; };  ///< asked on rank 0 before each sample
  std::function<void(const measure_progress&)> report = [](const auto&) {};  ///< on rank 0
  /// Told on rank 0 which points a device does not do, and why: they stay without samples.
  std::function<void(const measured_point&, const std::string&)> leaves_out = [](const auto&,
                                                                                 const auto&) {};
};

/// False if stopped. transport_error.
bool measure(const measure_request&, transport&);

/// What the results depend on: card, driver, libraries, variables.
std::map<std::string, std::string> describe_machine();

}  // namespace attnsim::validate
