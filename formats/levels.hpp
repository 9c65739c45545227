// How high the parts of a network stand.
#pragma once

#include <vector>

#include "formats/topology.hpp"

namespace attnsim::formats {

/// Steps over network cables from the nearest NIC, or device where a device has such a cable itself;
/// 2^30 for parts that no such way leads to.
std::vector<int> levels_above_nics(const topology&);

/// Steps over any cables from the nearest of `from`.
std::vector<int> levels_above(const topology&, const std::vector<std::size_t>& from);

}  // namespace attnsim::formats
