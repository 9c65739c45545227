// A cluster as people look at it.
#pragma once

#include <span>
#include <string>

#include "model/cluster/cluster.hpp"

namespace attnsim::formats {

/// A square matrix of the first node's devices and NICs (at most 32 of them), as nvidia-smi topo -m
/// prints it: kind and narrowest bandwidth in GB/s, such as NV450, PCI31, NET50, of what a message takes
/// between two devices, else of the shortest way.
std::string draw_matrix(const cluster&);

/// The most that the first half of the devices can send to the second half, all together, over
/// whatever paths there are; with an odd number the first half is the smaller. Zero for one device.
bandwidth bisection(const cluster&);

/// Parts in rows by their distance from the devices, cables as lines, as an SVG document. With `use`,
/// the share of its capacity that each of the network's links carries, cables have the colour of the
/// busier direction. Throws input_error for more than 4096 parts.
std::string draw_svg(const cluster&, std::span<const double> use = {});

}  // namespace attnsim::formats
