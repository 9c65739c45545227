#include "formats/host_list.hpp"

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"

namespace attnsim::formats {
namespace host_list_test {

using testing::ElementsAre;

TEST(expand_host_list, ranges_keep_their_zeros) {
  EXPECT_THAT(expand_host_list("n[008-010,12],login"),
              ElementsAre("n008", "n009", "n010", "n12", "login"));
  EXPECT_THAT(expand_host_list("[1-2]"), ElementsAre("1", "2"));
}

TEST(expand_host_list, brackets_multiply) {
  EXPECT_THAT(expand_host_list("r[1-2]n[3,5]x"), ElementsAre("r1n3x", "r1n5x", "r2n3x", "r2n5x"));
}

TEST(expand_host_list, refuses_malformed_and_endless_lists) {
  for (const auto* list :
       {"", "a,", "a[1-2", "a[2-1]", "a[x]", "a[]", "a[-1]", "a[1-99999999999]"}) {
    EXPECT_ERROR(expand_host_list(list), std::invalid_argument,
                 "expected a host list, such as node[01-08,10]");
  }
  EXPECT_ERROR(expand_host_list("a[0-9999999]"), std::length_error,
               "describes more than 131072 hosts");
  EXPECT_ERROR(expand_host_list("a[0-9999][0-9999]"), std::length_error,
               "describes more than 131072 hosts");
}

}  // namespace host_list_test
}  // namespace attnsim::formats
