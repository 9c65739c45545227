// A device profile as the YAML that read_device reads.
#pragma once

#include <string>

#include "model/cluster/device.hpp"

namespace attnsim {

/// `notes`: comment lines above, without their '#'. Values keep four significant digits.
std::string to_yaml(const device_profile&, const std::vector<std::string>& notes = {});

}  // namespace attnsim
