// Which device runs which rank. Devices are numbered node by node, so consecutive devices share a node as far as they fit.
//
//   node-major      rank i on device i; a row's ranks are consecutive, so rows lie inside nodes as far as they fit
//   row-in-node     the same, by its purpose
//   column-in-node  a column's ranks on consecutive devices
//   tile-in-node    r x c tiles of the grid fill a node, as square as divides it
//   tile:RxC        tiles of R x C do; neighbours in the next tile are on the same rail
//   rails           consecutive ranks on consecutive nodes, on one rail: what the others keep in a node goes between
//                   nodes and the other way round (LoongTrain's context-first placement, arXiv 2406.18485)
//   custom:3,1,...  the device of each rank
#pragma once

#include <string>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/schedule/grid.hpp"

namespace attnsim {

/// The device of each rank. Named placements arrange axes 0 and 1 of the grid; ranks that differ in further axes are on
/// consecutive devices. Throws input_error for an unknown name or a list that is not distinct devices of the cluster,
/// one a rank; infeasible when the cluster has fewer devices than the grid ranks.
std::vector<int> place(const std::string& placement, const rank_grid&, const cluster&);

/// The custom placement with these devices, by rank.
std::string placed_on(const std::vector<int>& devices);

/// The named placements, for help.
std::vector<std::string> placements();

/// Placements that differ on this grid and cluster, for search: which ranks share a node (every tile that divides the
/// grid, whole rows and columns), or rails.
std::vector<std::string> distinct_placements(const rank_grid&, const cluster&);

}  // namespace attnsim
