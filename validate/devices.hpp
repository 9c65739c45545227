// What a rank computes with, by name: cpu, and cuda and cudnn where the library was built with them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "model/cluster/device.hpp"

namespace attnsim::validate {

struct device_choice {
  std::string kernel = "cpu";
  int local_rank = 0;      ///< among the ranks of this host: GPUs are dealt out in turn
  bool priorities = true;  ///< GPUs: communication streams before the compute stream
  bool poison = false;     ///< GPUs: memory starts as NaN
};

/// input_error for an unknown name, or one that was not built or has no GPU here.
std::unique_ptr<kernels::backend> make_device(const device_choice&);

/// cuda, cudnn: those that were built, where there is a GPU.
std::vector<std::string> gpu_kernels();

}  // namespace attnsim::validate
