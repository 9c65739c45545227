// Short operations one after the other, as a program of as many casts and exchanges that the simulator runs.
#pragma once

#include "calibrate/measurements.hpp"
#include "model/cluster/cluster.hpp"

namespace attnsim {

/// A sequence's time_s (measurements.hpp). Throws input_error where the cluster has too few devices.
seconds simulated(const sequence_point&, const cluster&);

}  // namespace attnsim
