// What a flow asks of the network: a path, that is a list of links and how strongly it loads each
// of them, and perhaps a limit of its rate. A flow with rate r puts weight * r on each link of its
// path. A weight of 2 stands for two identical flows or for a path that crosses the link twice, 0.5
// for a flow of which half goes this way. Capacities and rates are bytes/s.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "model/cluster/link_use.hpp"

namespace attnsim {

inline constexpr double unlimited = std::numeric_limits<double>::infinity();

/// Makes one use of those of a link, their weights added in their order; ascending by link.
void merge_uses(std::vector<link_use>&);

/// The path with repeated links merged, their weights added, in the order of the links. Throws
/// std::invalid_argument when a link is not below `links` or a weight is not positive and finite.
std::vector<link_use> merged_path(std::span<const link_use> path, std::size_t links);

/// Throw std::invalid_argument unless every capacity is positive and finite, and the limit
/// positive.
void require_capacities(std::span<const double> capacities);
void require_rate_limit(double rate_limit);

}  // namespace attnsim
