#include "formats/fat_tree.hpp"

#include <gmock/gmock.h>

#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace fat_tree_test {

using testing::ElementsAre;

TEST(add_fat_tree, joins_every_level) {
  // PGFT(2; 2,3; 1,2; 1,2): three leaves of two hosts, two roots, two cables from leaf to root.
  topology t;
  std::vector<std::size_t> hosts;
  for (int i = 0; i < 6; ++i) {
    hosts.push_back(t.add(part_kind::device, "h" + std::to_string(i), i));
  }
  add_fat_tree(t, hosts, {{2, 1, 1, bandwidth(1e9), {}}, {3, 2, 2, bandwidth(2e9), {}}});
  EXPECT_EQ(counts_of(t), (counts{6, 0, 3 + 2, 0, 6 + 3 * 2 * 2}));
  EXPECT_THAT(neighbours(t, "level1.1"),
              ElementsAre("h2", "h3", "level2.0", "level2.0", "level2.1", "level2.1"));
  EXPECT_THAT(rates(t, "level1.2", "level2.1"), ElementsAre(2, 2));
}

TEST(add_fat_tree, roots_of_equal_rank_are_joined) {
  // Three levels of two children, two parents: a switch of rank r is joined to those of rank r and
  // r + 2 above. Four leaves, four above in two pods, four roots.
  topology t;
  std::vector<std::size_t> hosts;
  for (int i = 0; i < 8; ++i) {
    hosts.push_back(t.add(part_kind::device, "h" + std::to_string(i), i));
  }
  add_fat_tree(t, hosts, {{2, 1, 1, {}, {}}, {2, 2, 1, {}, {}}, {2, 2, 1, {}, {}}});
  EXPECT_EQ(counts_of(t), (counts{8, 0, 4 + 4 + 4, 0, 8 + 8 + 8}));
  EXPECT_THAT(neighbours(t, "level2.0"),
              ElementsAre("level1.0", "level1.1", "level3.0", "level3.2"));
  EXPECT_THAT(neighbours(t, "level3.1"), ElementsAre("level2.1", "level2.3"));
}

}  // namespace fat_tree_test
}  // namespace attnsim::formats
