// Arguments of forward(), checked, as kernels take them.
#pragma once

#include <string>

#include "kernels/cuda/block.cuh"

namespace attnsim::kernels::cuda {

/// Throws infeasible("attention on a GPU: " + what) unless `condition`.
void require(bool condition, const std::string& what);

/// Of any head dimensions. Throws infeasible for what no kernel takes: types, alignment, heads that K/V heads do not divide,
/// sizes beyond 32 bits.
forward_parameters parameters_of(const forward_arguments& arguments);

/// The major number of the current device's compute capability.
int compute_capability();

}  // namespace attnsim::kernels::cuda
