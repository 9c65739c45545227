#include "sim/lazy_heap.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace attnsim {
namespace lazy_heap_test {

TEST(lazy_heap, the_smallest_key_comes_first) {
  lazy_heap heap;
  EXPECT_TRUE(heap.empty());
  const double keys[] = {3, 1, 4, 1.5, 9, 2.6};
  for (std::uint32_t i = 0; i < 6; ++i) heap.add(10 + i, keys[i]);
  heap.arrange();
  std::vector<std::uint32_t> order;
  for (; !heap.empty(); heap.pop()) order.push_back(heap.top());
  EXPECT_THAT(order, testing::ElementsAre(11, 13, 15, 10, 12, 14));
}

TEST(lazy_heap, is_used_again_after_clear) {
  lazy_heap heap;
  for (std::uint32_t i = 0; i < 9; ++i) heap.add(i, 1);
  heap.arrange();
  heap.clear();
  EXPECT_TRUE(heap.empty());
  heap.add(7, 2);
  heap.arrange();
  EXPECT_EQ(heap.top(), 7u);
  heap.pop();
  EXPECT_TRUE(heap.empty());
}

TEST(lazy_heap, keys_that_grow_come_later) {
  std::mt19937 random(1);
  for (std::uint32_t entries = 1; entries < 40; ++entries) {
    lazy_heap heap;
    std::vector<double> keys;
    for (std::uint32_t i = 0; i < entries; ++i) {
      keys.push_back(random() % 100);
      heap.add(i, keys[i]);
    }
    heap.arrange();
    for (std::size_t left = entries; left > 0;) {
      ASSERT_EQ(heap.top_key(), *std::min_element(keys.begin(), keys.end()));
      ASSERT_EQ(heap.top_key(), keys[heap.top()]);
      if (random() % 3 == 0) {
        keys[heap.top()] = 1e9;
        heap.pop();
        --left;
      } else {
        keys[heap.top()] += random() % 20;
        heap.raise_top(keys[heap.top()]);
      }
    }
    EXPECT_TRUE(heap.empty());
  }
}

}  // namespace lazy_heap_test
}  // namespace attnsim
