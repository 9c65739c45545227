#include "sim/joined_links.hpp"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <unordered_map>
#include <utility>

namespace attnsim {
namespace {

/// Routes that cross a link, each with its weight.
using crossing_routes = std::vector<std::pair<std::size_t, double>>;

struct hash_of_routes {
  std::size_t operator()(const crossing_routes& routes) const {
    std::size_t hash = routes.size();
    for (const auto& [route, weight] : routes) {
      boost::hash_combine(hash, route);
      boost::hash_combine(hash, weight);
    }
    return hash;
  }
};

}  // namespace

joined_links join_links(const std::vector<double>& capacities,
                        std::span<const std::vector<link_use>> routes) {
  std::vector<crossing_routes> crossed_by(capacities.size());
  for (std::size_t r = 0; r < routes.size(); ++r) {
    for (const auto& use : routes[r]) crossed_by[use.link].emplace_back(r, use.weight);
  }
  joined_links result;
  std::unordered_map<crossing_routes, link_id, hash_of_routes> known;
  std::vector<bool> is_first;
  for (link_id l = 0; l < capacities.size(); ++l) {
    const auto next = static_cast<link_id>(result.capacities.size());
    const auto [where, is_new] = known.try_emplace(std::move(crossed_by[l]), next);
    if (is_new) result.capacities.push_back(capacities[l]);
    auto& narrowest = result.capacities[where->second];
    narrowest = std::min(narrowest, capacities[l]);
    result.number_of.push_back(where->second);
    is_first.push_back(is_new);
  }
  for (const auto& route : routes) {
    auto& joined = result.routes.emplace_back();
    for (const auto& use : route) {
      if (is_first[use.link]) joined.push_back({result.number_of[use.link], use.weight});
    }
  }
  return result;
}

}  // namespace attnsim
