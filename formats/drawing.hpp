// A cluster as people look at it.
#pragma once

#include <string>

#include "model/cluster.hpp"

namespace attnsim::formats {

/// A square matrix of the first node's devices and NICs (at most 32 of them), as nvidia-smi topo -m
/// prints it: kind and narrowest bandwidth in GB/s of the shortest way, such as NV450, PCI31, NET50.
std::string draw_matrix(const cluster&);

/// The most that the first half of the devices can send to the second half, all together, over
/// whatever paths there are; with an odd number the first half is the smaller. Zero for one device.
bandwidth bisection(const cluster&);

/// Parts in rows by their distance from the devices, cables as lines, as an SVG document. Throws
/// input_error for more than 4096 parts.
std::string draw_svg(const cluster&);

}  // namespace attnsim::formats
