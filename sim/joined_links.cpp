#include "sim/joined_links.hpp"

#include <algorithm>
#include <map>

namespace attnsim {

joined_links join_links(const std::vector<double>& capacities,
                        std::span<const std::vector<link_use>> routes) {
  std::vector<std::vector<std::pair<std::size_t, double>>> crossed_by(capacities.size());
  for (std::size_t r = 0; r < routes.size(); ++r) {
    for (const auto& use : routes[r]) crossed_by[use.link].emplace_back(r, use.weight);
  }
  joined_links result;
  std::map<std::vector<std::pair<std::size_t, double>>, link_id> known;
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
