// Input files whole, with a limit on their size.
#pragma once

#include <istream>
#include <string>

namespace attnsim {

/// Throws input_error when the file cannot be read or is larger than 64 MiB.
std::string read_file(const std::string& path);

/// The rest of a stream, called `name` in messages.
std::string read_stream(std::istream&, const std::string& name);

}  // namespace attnsim
