// Output files: written whole or not at all, and never over what is read or written beside them.
//
// A regular file is written under a name of its own in the same folder and then renamed; a symbolic link stays, and the
// file that it names is written so. Devices, pipes and open descriptors (/dev/null, a FIFO, /dev/stdout) are written in
// place.
#pragma once

#include <string>
#include <vector>

namespace attnsim::cli {

/// A file and the flag or argument that names it; with an empty path it is not given.
struct named_file {
  std::string flag, path;
};

/// Before any work: throws input_error, which names the flag, where an output cannot be written, is the file of an input
/// or of another output, or is where the shell sends standard output.
void check_files(const std::vector<named_file>& outputs,
                 const std::vector<named_file>& inputs = {});

/// Throws input_error naming `flag`, with the reason, when the file cannot be written.
void write_file(const std::string& flag, const std::string& path, const std::string& text);

}  // namespace attnsim::cli
