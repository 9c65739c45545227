#include "model/layer/degrees.hpp"

#include <gmock/gmock.h>

namespace attnsim {
namespace {

using testing::ElementsAre;

constexpr degrees two_of_each{.tensor = 2, .context = 2, .data = 2, .pipeline = 2};

TEST(degrees, tensor_ranks_are_next_to_each_other_then_context_then_data) {
  EXPECT_EQ(two_of_each.ranks(), 16);
  EXPECT_THAT(
      groups_of(two_of_each, rank_group::tensor, 8),
      ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5), ElementsAre(6, 7)));
  EXPECT_THAT(
      groups_of(two_of_each, rank_group::context, 8),
      ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
  EXPECT_THAT(groups_of(two_of_each, rank_group::replicas, 8),
              ElementsAre(ElementsAre(0, 2, 4, 6), ElementsAre(1, 3, 5, 7)));
}

TEST(degrees, stages_that_share_a_node_are_counted_together) {
  EXPECT_EQ(groups_of(two_of_each, rank_group::tensor, 16).size(), 8u);
  EXPECT_EQ(stage_neighbours(two_of_each, 8).size(), 8u);
  EXPECT_THAT(stage_neighbours(two_of_each, 8).back(), ElementsAre(7, 15));
}

TEST(degrees, experts_are_on_consecutive_ranks) {
  constexpr degrees d{.data = 8, .expert = 4};
  EXPECT_THAT(groups_of(d, rank_group::expert, 8),
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT(
      groups_of(d, rank_group::expert_replicas, 8),
      ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
}

}  // namespace
}  // namespace attnsim
