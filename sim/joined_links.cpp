#include "sim/joined_links.hpp"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <numeric>
#include <unordered_map>

namespace attnsim {
namespace {

/// The routes that cross each link, each with its weight: all in one list, as millions of links are crossed by a few routes each.
class crossing_routes {
 public:
  crossing_routes(std::size_t links, std::span<const std::vector<link_use>> routes)
      : end_(links + 1) {
    for (const auto& route : routes) {
      for (const auto& use : route) ++end_[use.link + 1];
    }
    std::partial_sum(end_.begin(), end_.end(), end_.begin());
    all_.resize(end_.back());
    for (std::size_t r = 0; r < routes.size(); ++r) {
      for (const auto& use : routes[r]) all_[end_[use.link]++] = {r, use.weight};
    }
  }

  std::size_t hash(link_id link) const {
    std::size_t hash = 0;
    for (const auto& [route, weight] : of(link)) {
      boost::hash_combine(hash, route);
      boost::hash_combine(hash, weight);
    }
    return hash;
  }
  bool are_same(link_id a, link_id b) const {
    const auto of_a = of(a), of_b = of(b);
    return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
  }

 private:
  struct crossing {
    std::size_t route;
    double weight;

    friend bool operator==(const crossing&, const crossing&) = default;
  };

  std::span<const crossing> of(link_id link) const {
    const auto begin = link == 0 ? 0 : end_[link - 1];
    return {all_.data() + begin, all_.data() + end_[link]};
  }

  std::vector<std::size_t> end_;  ///< by link; while they are listed, up to where
  std::vector<crossing> all_;
};

}  // namespace

joined_links join_links(const std::vector<double>& capacities,
                        std::span<const std::vector<link_use>> routes) {
  const crossing_routes crossing(capacities.size(), routes);
  const auto hash = [&](link_id link) { return crossing.hash(link); };
  const auto same = [&](link_id a, link_id b) { return crossing.are_same(a, b); };
  std::unordered_map<link_id, link_id, decltype(hash), decltype(same)> known(capacities.size(),
                                                                             hash, same);
  joined_links result;
  result.number_of.reserve(capacities.size());
  std::vector<bool> is_first;
  for (link_id l = 0; l < capacities.size(); ++l) {
    const auto next = static_cast<link_id>(result.capacities.size());
    const auto [where, is_new] = known.try_emplace(l, next);
    if (is_new) result.capacities.push_back(capacities[l]);
    auto& narrowest = result.capacities[where->second];
    narrowest = std::min(narrowest, capacities[l]);
    result.number_of.push_back(where->second);
    is_first.push_back(is_new);
  }
  result.routes.reserve(routes.size());
  for (const auto& route : routes) {
    auto& joined = result.routes.emplace_back();
    for (const auto& use : route) {
      if (is_first[use.link]) joined.push_back({result.number_of[use.link], use.weight});
    }
  }
  return result;
}

}  // namespace attnsim
