#include "formats/fabric_parts.hpp"

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace fabric_parts_test {

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

TEST(fabric_parts, a_host_hangs_below_one_switch_and_is_in_one_domain) {
  topology t;
  fabric_parts parts(t);
  const auto leaf = parts.find_switch("leaf");
  parts.put_below("h", leaf);
  EXPECT_ERROR(parts.put_below("h", leaf), std::invalid_argument,
               "expected each host below one switch, once; h is below leaf");
  parts.put_in_domain("h", 0);
  EXPECT_ERROR(parts.put_in_domain("h", 1), std::invalid_argument,
               "expected each host in one NVLink domain, once; h is in one");
  EXPECT_EQ(t.cables.size(), 1u);
}

TEST(fabric_parts, a_switch_may_hang_below_several_but_not_below_itself) {
  topology t;
  fabric_parts parts(t);
  const auto leaf = parts.find_switch("leaf"), spine = parts.find_switch("spine"),
             core = parts.find_switch("core"), other = parts.find_switch("other");
  parts.join_below(leaf, spine);
  parts.join_below(leaf, other);
  parts.join_below(spine, core);
  EXPECT_ERROR(parts.join_below(core, leaf), std::invalid_argument,
               "expected no switch below itself; core is above leaf");
  EXPECT_ERROR(parts.join_below(leaf, leaf), std::invalid_argument,
               "expected no switch below itself; leaf is above leaf");
  EXPECT_ERROR(parts.join_below(leaf, spine), std::invalid_argument,
               "expected each switch once; leaf is named twice");
  EXPECT_EQ(t.cables.size(), 3u);
}

}  // namespace fabric_parts_test
}  // namespace attnsim::formats
