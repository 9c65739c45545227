#include "formats/fabric_parts.hpp"

#include <boost/pending/disjoint_sets.hpp>
#include <vector>

namespace attnsim::formats {

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
