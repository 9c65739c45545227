// Files that gzip packed.
#pragma once

#include <string>

namespace attnsim::formats {

/// What gzip packed, in one member or several; other bytes as they are. Throws input_error that begins with `name` for a
/// broken or cut file and for more than 64 MiB.
std::string unpacked(std::string bytes, const std::string& name);

}  // namespace attnsim::formats
