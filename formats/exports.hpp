// A cluster as other programs' files.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/cluster/cluster.hpp"

namespace attnsim::formats {

struct export_format {
  std::string_view name;
  std::string_view what;                 ///< one line for help
  std::string (*write)(const cluster&);  ///< throws input_error for what the format cannot say
};

std::span<const export_format> export_formats();

/// Throws input_error that lists the names.
const export_format& find_export(const std::string& name);

/// What the importer graphml takes: everything of the network.
std::string write_graphml(const cluster&);
/// Zones of hosts, routers and one-link routes, as the importer simgrid takes them.
std::string write_simgrid(const cluster&);
/// Graphviz: nodes as boxes, switches as ellipses.
std::string write_dot(const cluster&);
/// A dimension inside the nodes and one between them, each of one rate.
std::string write_astra_sim(const cluster&);

}  // namespace attnsim::formats
