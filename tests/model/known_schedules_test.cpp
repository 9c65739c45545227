#include "model/cost/known_schedules.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim {
namespace known_schedules_test {

constexpr attention layer{.heads = 8, .kv_heads = 8, .sequence = 65536};

known_schedules::device device(const char* name) {
  return std::make_shared<const device_profile>(read_device_file(name));
}

strategy on_a_ring(int ranks) {
  return complete({.schedule = "ring"}, layer, ranks);
}

TEST(known_schedules, are_made_once_wherever_their_ranks_are) {
  known_schedules all;
  const auto h100 = device("h100-sxm5");
  auto s = on_a_ring(8);
  const auto first = all.of(h100, layer, s, pass_kind::forward);
  s.placement = "rails";
  const auto again = all.of(h100, layer, s, pass_kind::forward);
  EXPECT_EQ(again.priced, first.priced);
  EXPECT_EQ(again.memory().peak, peak_memory(first.priced->work()).peak);
}

TEST(known_schedules, differ_by_all_that_they_are_made_of) {
  known_schedules all;
  const auto h100 = device("h100-sxm5"), h20 = device("h20");
  const auto s = on_a_ring(8);
  const auto first = all.of(h100, layer, s, pass_kind::forward).priced;
  auto longer = layer;
  longer.sequence *= 2;
  auto late = s;
  late.launch = launch_order::compute_first;
  EXPECT_NE(all.of(h100, layer, s, pass_kind::backward).priced, first);
  EXPECT_NE(all.of(h100, longer, s, pass_kind::forward).priced, first);
  EXPECT_NE(all.of(h100, layer, late, pass_kind::forward).priced, first);
  const auto slower = all.of(h20, layer, s, pass_kind::forward).priced;
  EXPECT_GT(slower->costs().longest_stream(0), first->costs().longest_stream(0));
  EXPECT_EQ(all.of(h100, layer, s, pass_kind::forward).priced, first);
}

TEST(known_schedules, of_a_mesh_follow_its_program_and_not_the_cost_of_a_block) {
  known_schedules all;
  const auto h100 = device("h100-sxm5");
  auto shared_keys = layer;
  shared_keys.kv_heads = 2;
  std::vector<std::shared_ptr<const priced_schedule>> different;
  int asked = 0, grids = 0;
  for (const int rows : {4, 8, 16, 32}) {
    ++grids;
    strategy s{.schedule = "mesh", .rows = rows, .cols = 64 / rows};
    for (const double cost : {0.01, 0.1, 0.3, 1.0, 3.0, 10.0}) {
      s.block_cost = cost;
      const auto known = all.of(h100, shared_keys, s, pass_kind::forward).priced;
      EXPECT_EQ(known->program(), make_schedule(s, shared_keys, pass_kind::forward)) << cost;
      EXPECT_EQ(all.of(h100, shared_keys, s, pass_kind::forward).priced, known);
      ++asked;
      if (std::find(different.begin(), different.end(), known) == different.end())
        different.push_back(known);
    }
  }
  EXPECT_LT(different.size(), static_cast<std::size_t>(asked));
  EXPECT_GT(different.size(), static_cast<std::size_t>(grids));
}

TEST(known_schedules, are_forgotten_the_longest_unused_first) {
  known_schedules all;
  const auto h100 = device("h100-sxm5");
  const auto ask = [&](std::int64_t heads) {
    auto a = layer;
    a.heads = a.kv_heads = heads;
    return all.of(h100, a, on_a_ring(512), pass_kind::forward).priced;
  };
  const std::weak_ptr<const priced_schedule> used = ask(1), unused = ask(2);
  for (int heads = 3; heads < 40; ++heads) {
    ask(heads);
    ask(1);
  }
  EXPECT_FALSE(used.expired());
  EXPECT_TRUE(unused.expired());
}

}  // namespace known_schedules_test
}  // namespace attnsim
