// An NVIDIA GPU as a device: kernels/backend.hpp on CUDA streams and events and the kernels of this folder.
//
//   streams    cudaStream_t of its own, not tied to the default stream; high ones have the device's greatest priority
//   memory     from cudaMalloc, kept for the next allocation of the same size: nothing waits for the device in between
//   workspace  of backward: from the device's memory pool, in stream order; of split keys: kept by each stream; not counted by an
//              executor
//   call()     cudaLaunchHostFunc; what it throws comes from the stream's next synchronize(); also from other threads
//
// A back end belongs to the thread that made it, whose current device it sets. bf16 and fp16; head_dim as
// kernels/cuda/attention.hpp says. Errors: infeasible for what no kernel does, std::runtime_error for CUDA's own.
#pragma once

#include <memory>
#include <string>

#include "kernels/backends.hpp"
#include "kernels/cuda/attention.hpp"

namespace attnsim::kernels::cuda {

struct backend_options {
  int device = 0;
  path kernels = path::automatic;
  bool spin = true;        ///< false: a host's thread that waits leaves its core to others
  bool priorities = true;  ///< false: all streams alike, as frameworks leave them
  bool poison = false;     ///< memory starts as NaN, so that tests notice what nobody wrote
};

std::unique_ptr<backend> make_backend(const backend_options& options = {});

/// kernels/backends.hpp.
backend_description describe();

/// 0 where there is no driver.
int device_count();
/// The one of this host that a rank gets.
backend_options options_of(const device_options&);

}  // namespace attnsim::kernels::cuda
