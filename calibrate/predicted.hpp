// What the model says about a measured point, from a device profile and, where ranks talk, a cluster. Devices are idle
// before an overlap, warm before the others (device.hpp, idle_start_profile).
#pragma once

#include "calibrate/measurements.hpp"
#include "model/cluster/cluster.hpp"
#include "model/cost/collective.hpp"
#include "model/cost/kernel.hpp"
#include "model/cost/matmul.hpp"

namespace attnsim {

kernel_call call_of(const kernel_point&);
matrix_product product_of(const product_point&);

/// What the profile has for a kernel that was run: the one of its name, the newest of its other versions, or its default,
/// which is empty.
std::string nearest_kernel(const device_profile&, const std::string& kernel);

/// How many channels NCCL gives a send/recv with one peer where an operation may have so many: the next power of two,
/// above 8 half of it (2.28, measured with 2 to 32).
int channels_for_peers(int allowed);

/// The cluster whose transports have the channels that a transfer is allowed.
cluster with_channels_of(const transfer_point&, const cluster&);

/// What ranks 0, stride, ... of a cluster move in a transfer, as the model's flow of it.
collective_flow flow_of(const transfer_point&, const cluster&);

/// Throws input_error where the cluster has too few devices.
seconds predicted_time(const measured_point&, const cluster&);
/// Relative half-width of the 90 % interval around it.
double uncertainty_of(const measured_point&, const cluster&);

}  // namespace attnsim
