// Links in series. Where the same routes cross several links with the same weights, only the
// narrowest can ever be full: one link stands for all, with its capacity. A device's link to its NIC
// and the NIC's cable are the common case; it halves the network's work.
#pragma once

#include <span>
#include <vector>

#include "sim/fair_shares.hpp"

namespace attnsim {

struct joined_links {
  std::vector<link_id> number_of;             ///< by link: which of the joined ones
  std::vector<double> capacities;             ///< of the joined ones
  std::vector<std::vector<link_use>> routes;  ///< over the joined ones
};

/// Precondition: no route has a link twice.
joined_links join_links(const std::vector<double>& capacities,
                        std::span<const std::vector<link_use>> routes);

}  // namespace attnsim
