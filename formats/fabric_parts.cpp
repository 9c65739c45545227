#include "formats/fabric_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <set>
#include <stdexcept>

namespace attnsim::formats {

void fabric_parts::put_below(const std::string& host, std::size_t leaf) {
  const auto part = find_host(host);
  auto& above = above_[part];
  if (!above.empty()) {
    throw std::invalid_argument(
        fmt::format("expected each host below one switch, once; {} is below {}", host,
                    fabric_.parts[above.front()].name));
  }
  above.push_back(leaf);
  fabric_.join(part, leaf, {}, {}, link_kind::network);
}

void fabric_parts::put_in_domain(const std::string& host, int domain) {
  auto& known = fabric_.parts[find_host(host)].node;
  if (known >= 0) {
    throw std::invalid_argument(
        fmt::format("expected each host in one NVLink domain, once; {} is in one", host));
  }
  known = domain;
}

void fabric_parts::join_below(std::size_t child, std::size_t parent) {
  auto& above = above_[child];
  const auto& name = fabric_.parts[child].name;
  if (std::find(above.begin(), above.end(), parent) != above.end()) {
    throw std::invalid_argument(fmt::format("expected each switch once; {} is named twice", name));
  }
  if (hangs_below(parent, child)) {
    throw std::invalid_argument(fmt::format("expected no switch below itself; {} is above {}", name,
                                            fabric_.parts[parent].name));
  }
  above.push_back(parent);
  fabric_.join(child, parent, {}, {}, link_kind::network);
}

bool fabric_parts::hangs_below(std::size_t lower, std::size_t upper) const {
  std::set<std::size_t> seen{lower};
  for (std::vector<std::size_t> queue{lower}; !queue.empty();) {
    const auto at = queue.back();
    queue.pop_back();
    if (at == upper) return true;
    const auto above = above_.find(at);
    if (above == above_.end()) continue;
    for (const auto next : above->second) {
      if (seen.insert(next).second) queue.push_back(next);
    }
  }
  return false;
}

void fabric_parts::join_separate_parts() {
  const auto n = fabric_.parts.size();
  std::vector<std::size_t> ranks(n), parents(n);
  boost::disjoint_sets sets(ranks.data(), parents.data());
  std::vector<bool> has_parent(n);
  for (std::size_t i = 0; i < n; ++i) sets.make_set(i);
  for (const auto& c : fabric_.cables) {
    sets.union_set(c.from, c.to);
    if (fabric_.parts[c.to].kind == part_kind::switch_) has_parent[c.from] = true;
  }
  std::map<std::size_t, std::size_t> top;
  for (const auto s : fabric_.all(part_kind::switch_)) {
    auto& highest = top.try_emplace(sets.find_set(s), s).first->second;
    if (!has_parent[s]) highest = s;
  }
  if (top.size() < 2) return;
  const auto above = fabric_.add(part_kind::switch_, "joined");
  for (const auto& [set, highest] : top) {
    fabric_.join(highest, above, {}, {}, link_kind::network);
  }
  fabric_.said.missing.push_back(counted(top.size(), "part") +
                                 " of the fabric that the file does not join");
  fabric_.said.assumed.push_back("one switch above joins them");
}

}  // namespace attnsim::formats
