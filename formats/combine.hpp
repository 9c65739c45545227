// Several files into one cluster: node files and a fabric file, or nodes alone, or one file that
// tells all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/importer.hpp"
#include "formats/topology.hpp"

namespace attnsim::formats {

struct machine {
  topology inside;  ///< of every node (scope::node), or everything (scope::cluster)
  int nodes = 1;
  std::vector<std::string> names;  ///< of the nodes, where a file tells; else empty
  std::optional<topology> fabric;  ///< switches, and NICs named nodeN.nicI
  notes said;
};

/// Nodes that are alike become one description and a number; others are joined by a switch. The NICs
/// of a host take its cables in turn. A node that no file describes is assumed, and so are rates
/// that no file tells: a NIC's for a host's cable, as much as comes from below for a switch's.
/// Throws input_error for files that do not go together.
machine combine(std::vector<topology> files, const settings&);

}  // namespace attnsim::formats
