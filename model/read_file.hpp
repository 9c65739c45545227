// Input files whole, with a limit on their size.
#pragma once

#include <istream>
#include <string>

namespace attnsim {

constexpr std::size_t largest_file = 64u << 20;

/// The plain text (plain_text.hpp) of a file. Throws input_error when it cannot be read or is larger than 64 MiB.
std::string read_file(const std::string& path);

/// The same as it is, of a file or of the rest of a stream that messages call `name`.
std::string read_bytes(const std::string& path);
std::string read_bytes(std::istream&, const std::string& name);

}  // namespace attnsim
