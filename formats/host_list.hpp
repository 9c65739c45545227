// Slurm's host lists: "node[01-08,10],login" is node01 to node08, node10 and login. A number keeps
// the zeros it is written with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attnsim::formats {

/// Throws std::invalid_argument for a malformed list, std::length_error beyond most_parts names.
std::vector<std::string> expand_host_list(std::string_view list);

}  // namespace attnsim::formats
