#include "kernels/backends.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace attnsim::kernels {
namespace backends_test {

using testing::Not;

std::string message_of(const std::function<void()>& does) {
  try {
    does();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

TEST(backends, describe_themselves) {
  for (const auto& b : backends()) {
    SCOPED_TRACE(b.name);
    EXPECT_NE(b.profile_kernel, "");
    EXPECT_THAT(b.transports, Not(testing::IsEmpty()));
    EXPECT_TRUE(b.runs_with(b.transports.front()));
    EXPECT_FALSE(b.runs_with("pigeons"));
    if (b.present()) {
      EXPECT_EQ(make_device(b.name)->name(), b.name);
    }
  }
  EXPECT_TRUE(backends().front().present());
}

TEST(backends, are_found_by_name) {
  add_backend({.name = "absent", .present = [] { return false; }});
  EXPECT_EQ(find_backend("absent").name, "absent");
  EXPECT_EQ(message_of([] { make_device("absent"); }),
            "kernel: 'absent': there is no device for it here");
  std::string names;
  for (const auto& b : backends()) names += (names.empty() ? "" : ", ") + b.name;
  EXPECT_EQ(message_of([] { find_backend("abacus"); }),
            "kernel: 'abacus': expected one of: " + names);
  EXPECT_EQ(message_of([] { find_backend("abacus", asked("kernels")); }),
            "kernels: 'abacus': expected one of: " + names);
  EXPECT_EQ(message_of([] { add_backend({.name = "absent"}); }),
            "back end absent is there already");
}

}  // namespace backends_test
}  // namespace attnsim::kernels
