// Where shipped clusters, devices, hosts and frameworks are: topologies/FOLDER/NAME.yaml under the folder that the
// variable ATTNSIM_TOPOLOGIES names, then in the program's sources, then in its installation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attnsim {

/// The path of a file called `name_or_file`, or of the shipped file of that name in `folder`
/// ("clusters", "devices", "hosts" or "frameworks"), or that a short name of aliases.yaml beside the folders stands for. Throws std::invalid_argument that lists the shipped names.
std::string find_topology_file(std::string_view folder, const std::string& name_or_file);

/// The names in `folder`, sorted.
std::vector<std::string> shipped_names(std::string_view folder);

}  // namespace attnsim
