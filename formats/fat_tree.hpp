// Parallel-ports generalised fat trees, PGFT(h; m; w; p): Zahavi, Fat-Trees Routing and Node
// Ordering Providing Contention Free Traffic for MPI Global Collectives, JPDC 72(11), 2012. A switch
// of level l has m_l children, whatever is below has w_l parents there, over p_l cables each.
#pragma once

#include <vector>

#include "formats/topology.hpp"

namespace attnsim::formats {

struct fat_tree_level {
  std::size_t down = 1;    ///< m
  std::size_t up = 1;      ///< w
  std::size_t cables = 1;  ///< p
  bandwidth rate;          ///< of a cable
  seconds latency;
};

/// Adds switches and cables above the hosts, of which there must be as many as the product of m.
void add_fat_tree(topology&, const std::vector<std::size_t>& hosts,
                  const std::vector<fat_tree_level>&);

}  // namespace attnsim::formats
