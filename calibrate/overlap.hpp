// A kernel and a transfer launched together on idle devices, as a program of two operations that the simulator runs:
// operands of the kernel's own shape, whatever the transfer moves, nothing that one needs of the other.
#pragma once

#include "calibrate/measurements.hpp"
#include "model/cluster/cluster.hpp"

namespace attnsim {

/// As an overlap's samples have them (measurements.hpp).
struct overlap_times {
  seconds total;  ///< time_s: from the start to the end of both
  seconds kernel,
      transfer;  ///< kernel_s, transfer_s: each to its end, from when the host begins to launch it
};

/// Throws input_error where the cluster has too few devices.
overlap_times simulated(const overlap_point&, const cluster&);

}  // namespace attnsim
