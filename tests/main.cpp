// Runs a folder's tests, or with --file=NAME those of NAME_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace {

/// GoogleTest's filter of the tests in NAME_test.cpp; empty where there are none.
std::string tests_of(std::string_view name) {
  const auto& all = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const auto& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const auto& test = *suite.GetTestInfo(t);
      if (std::filesystem::path(test.file()).filename() == std::string(name) + "_test.cpp")
        filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  constexpr std::string_view file = "--file=";
  for (const std::string_view argument : std::vector<std::string_view>(argv + 1, argv + argc)) {
    const auto filter = argument.starts_with(file) ? tests_of(argument.substr(file.size())) : "";
    if (filter.empty()) {
      std::fprintf(stderr, "%s: expected --file=NAME of a NAME_test.cpp that has tests\n",
                   argument.data());
      return 2;
    }
    testing::GTEST_FLAG(filter) = filter;
  }
  return RUN_ALL_TESTS();
}
