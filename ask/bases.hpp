// What stands behind the figures of a device and a host: measured with this program, published by others, or assumed. Files of
// topologies/ say which (model/cluster/device.hpp, basis), and why beside each.
#pragma once

#include <string>
#include <vector>

#include "ask/predict.hpp"
#include "model/cluster/cluster.hpp"

namespace attnsim::ask {

struct stated_basis {
  std::string figures;  ///< "kernel fa3", "nvlink", "host pytorch"
  std::string basis;    ///< "measured here", "published, of two devices measured here"
};

/// Of all kernels, of the transports over links that the cluster has, of its host if it has one.
std::vector<stated_basis> bases_of(const cluster&);

/// The same with the kernel of a prediction alone.
std::vector<stated_basis> bases_of(const cluster&, const prediction&);

/// In one line.
std::string text_of(const std::vector<stated_basis>&);

}  // namespace attnsim::ask
