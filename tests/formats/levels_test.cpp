#include "formats/levels.hpp"

#include <gmock/gmock.h>

namespace attnsim::formats {
namespace levels_test {

using testing::ElementsAre;

TEST(levels, are_steps_from_nics_or_from_given_parts) {
  topology t;
  const auto gpu = t.add(part_kind::device, "gpu", 0), nic = t.add(part_kind::nic, "nic", 0);
  const auto leaf = t.add(part_kind::switch_, "leaf"), spine = t.add(part_kind::switch_, "spine");
  t.join(gpu, nic, {}, {}, link_kind::pcie);
  t.join(nic, leaf, {}, {}, link_kind::network);
  t.join(leaf, spine, {}, {}, link_kind::network);
  EXPECT_THAT(levels_above_nics(t), ElementsAre(1 << 30, 0, 1, 2));
  EXPECT_THAT(levels_above(t, {gpu}), ElementsAre(0, 1, 2, 3));
}

}  // namespace levels_test
}  // namespace attnsim::formats
