// What users of a machine should know about its wiring.
#pragma once

#include <string>
#include <vector>

#include "formats/topology.hpp"

namespace attnsim::formats {

/// Of the first node: devices whose nearest NIC is on another CPU domain, and pairs without NVLink,
/// direct or by way of one other device, that meet over a CPU, where NCCL may have no peer-to-peer access. Of the fabric: switches with
/// less bandwidth up than down. CPU domains are the switches called cpu... or socket...
std::vector<std::string> warnings_of(const topology&);

}  // namespace attnsim::formats
