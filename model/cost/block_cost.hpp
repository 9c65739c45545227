// What a greedy scheduler such as Mesh-Attention's weighs: the time of one block of the tile against the transfer of one
// query chunk.
#pragma once

#include "model/cluster/cluster.hpp"
#include "model/schedule/strategy.hpp"

namespace attnsim {

/// Time of one (query chunk, key chunk) block's kernel over that of one query chunk's transfer, by the slowest link between
/// neighbours of a row (of a column, where rows are single ranks). 0 for a single rank.
double block_cost(const cluster&, const attention&, const strategy&, pass_kind);

}  // namespace attnsim
