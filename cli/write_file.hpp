// Output files are written whole or not at all.
#pragma once

#include <string>

namespace attnsim::cli {

/// Writes beside `path` and renames. Throws input_error naming `flag` when the file cannot be written.
void write_file(const std::string& flag, const std::string& path, const std::string& text);

}  // namespace attnsim::cli
