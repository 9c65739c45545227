#include "formats/fabric_parts.hpp"

#include <gmock/gmock.h>

#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(fabric_parts, adds_each_name_once) {
  topology t;
  fabric_parts parts(t);
  EXPECT_EQ(parts.find_switch("a"), parts.find_switch("a"));
  EXPECT_NE(parts.find_host("a"), parts.find_switch("a"));
  EXPECT_TRUE(parts.has_switch("a"));
  EXPECT_FALSE(parts.has_switch("b"));
  EXPECT_EQ(t.parts.size(), 2u);
}

TEST(fabric_parts, a_switch_joins_the_tops_of_separate_parts) {
  topology t;
  fabric_parts parts(t);
  t.join(parts.find_switch("leaf"), parts.find_switch("spine"), {}, {}, link_kind::network);
  t.join(parts.find_host("h"), parts.find_switch("alone"), {}, {}, link_kind::network);
  parts.join_separate_parts();
  EXPECT_THAT(neighbours(t, "joined"), ElementsAre("alone", "spine"));
  EXPECT_THAT(t.said.missing, ElementsAre("2 parts of the fabric that the file does not join"));
  const auto before = t.parts.size();
  parts.join_separate_parts();
  EXPECT_EQ(t.parts.size(), before);
}

}  // namespace
}  // namespace attnsim::formats
