#include "formats/levels.hpp"

namespace attnsim::formats {
namespace {

constexpr int unmarked = 1 << 30;

template <typename Use>
std::vector<int> walk(const topology& t, std::vector<std::size_t> queue, Use use) {
  const auto cables = cables_of_parts(t);
  std::vector<int> level(t.parts.size(), unmarked);
  for (const auto part : queue) level[part] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const auto at = queue[next];
    for (const auto i : cables[at]) {
      const auto& c = t.cables[i];
      const auto other = c.from == at ? c.to : c.from;
      if (level[other] != unmarked || !use(c)) continue;
      level[other] = level[at] + 1;
      queue.push_back(other);
    }
  }
  return level;
}

}  // namespace

std::vector<int> levels_above_nics(const topology& t) {
  const auto is_network = [](const cable& c) { return c.kind == link_kind::network; };
  std::vector<bool> starts(t.parts.size());
  for (const auto& c : t.cables) {
    for (const auto end : {c.from, c.to}) {
      if (is_network(c) && t.parts[end].kind != part_kind::switch_) starts[end] = true;
    }
  }
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (starts[i]) ends.push_back(i);
  }
  return walk(t, std::move(ends), is_network);
}

std::vector<int> levels_above(const topology& t, const std::vector<std::size_t>& from) {
  return walk(t, from, [](const cable&) { return true; });
}

}  // namespace attnsim::formats
