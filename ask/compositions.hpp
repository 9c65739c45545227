// The levels of a cluster, and the schedules that share the work in one way at each of them.
#pragma once

#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/schedule/strategy.hpp"

namespace attnsim {

/// What the ranks at one level of a cluster do.
enum class level_way { heads, keys_gather, keys_ring, queries_gather };

inline constexpr level_way level_ways[] = {level_way::heads, level_way::keys_gather,
                                           level_way::keys_ring, level_way::queries_gather};

/// How many parts of the next level each has, from the innermost: devices of a node, nodes of a leaf, leaves, and of these
/// prime numbers, as ways may divide a node's devices, too; six at most, of which the last takes the rest. Of `ranks` devices
/// from the first on; levels are what devices share a node, or a switch nearest to them and no others (model/limit/cuts.hpp), as
/// far as they divide each other. Their product is `ranks`; none is 1 unless it is the only one.
std::vector<int> levels_of(const cluster&, int ranks);

/// The composed schedule: `ways[i]` at level i. Levels of one way are one axis, but for gathers of keys; those are gathered from the
/// outermost level to the innermost, so that links further out carry what is not gathered yet. Ranks are placed level by level.
strategy compose(const std::vector<int>& levels, const std::vector<level_way>& ways, strategy);

/// Of all ways at all levels.
std::vector<strategy> all_compositions(const std::vector<int>& levels, const strategy&);

}  // namespace attnsim
