#include "reproduce/study.hpp"

#include <gmock/gmock.h>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::reproduce {
namespace study_test {

using ::testing::DoubleNear;

TEST(study, error_is_relative_to_what_was_published) {
  const point p{.series = "a", .figure = "one", .published = 4, .predicted = 3};
  EXPECT_DOUBLE_EQ(p.error(), -0.25);
}

TEST(study, errors_are_collected_by_series_in_order_of_appearance) {
  const auto errors = errors_of({{"b", "1", 10, 11, true},
                                 {"a", "2", 10, 10, false},
                                 {"b", "3", 10, 6, true}});  // b: 10 % and -40 %
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].series, "b");
  EXPECT_EQ(errors[0].points, 2u);
  EXPECT_THAT(errors[0].mean, DoubleNear(0.25, 1e-12));
  EXPECT_THAT(errors[0].max, DoubleNear(0.4, 1e-12));
  EXPECT_EQ(errors[0].large, 1u);
  EXPECT_TRUE(errors[0].fitted);
  EXPECT_EQ(errors[1].series, "a");
  EXPECT_EQ(errors[1].mean, 0);
  EXPECT_FALSE(errors[1].fitted);
}

TEST(study, error_of_predicted_leaves_out_what_was_fitted) {
  const auto e =
      error_of_predicted({{"a", "1", 10, 12}, {"a", "2", 10, 9, true}, {"b", "3", 10, 6}});
  EXPECT_EQ(e.points, 2u);
  EXPECT_THAT(e.mean, DoubleNear(0.3, 1e-12));  // 20 % and -40 %
}

TEST(study, unknown_name_lists_the_names) {
  std::string names;
  for (const auto& s : studies()) names += (names.empty() ? "" : ", ") + std::string(s.name);
  EXPECT_ERROR(find_study("attention3d"), input_error,
               "NAME: 'attention3d': expected one of: " + names);
}

TEST(study, is_found_by_name) {
  for (const auto& s : studies()) EXPECT_EQ(&find_study(s.name), &s);
}

}  // namespace study_test
}  // namespace attnsim::reproduce
