#include "formats/fat_tree.hpp"

#include <fmt/format.h>

namespace attnsim::formats {

void add_fat_tree(topology& t, const std::vector<std::size_t>& hosts,
                  const std::vector<fat_tree_level>& levels) {
  // A level's parts by (tree, parent): the subtree that they are the root of, and which of the
  // equal roots they are. Part number = tree * roots + parent.
  auto below = hosts;
  std::size_t roots = 1;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const auto& level = levels[l];
    const auto trees = below.size() / roots / level.down;
    std::vector<std::size_t> here;
    for (std::size_t i = 0; i < trees * roots * level.up; ++i) {
      here.push_back(t.add(part_kind::switch_, fmt::format("level{}.{}", l + 1, i)));
    }
    for (std::size_t i = 0; i < below.size(); ++i) {
      const auto tree = i / roots / level.down, root = i % roots;
      for (std::size_t parent = 0; parent < level.up; ++parent) {
        const auto to = here[tree * roots * level.up + root + parent * roots];
        for (std::size_t c = 0; c < level.cables; ++c) {
          t.join(below[i], to, level.rate, level.latency, link_kind::network);
        }
      }
    }
    below = std::move(here);
    roots *= level.up;
  }
}

}  // namespace attnsim::formats
