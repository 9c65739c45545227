#include "report/csv.hpp"

#include <gtest/gtest.h>

namespace attnsim::report {
namespace csv_test {

TEST(csv, quotes_what_would_end_a_field_or_line) {
  EXPECT_EQ(csv_field("400 Gb/s"), "400 Gb/s");
  EXPECT_EQ(csv_field(""), "");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("8\" x"), "\"8\"\" x\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field("old\rline"), "\"old\rline\"");
}

TEST(csv, a_line_has_its_fields_in_order) {
  EXPECT_EQ(csv_line(std::vector<std::string>{"a", "", "b,c"}), "a,,\"b,c\"");
  EXPECT_EQ(csv_line("a \"b\"", 0.5, 1, true), "\"a \"\"b\"\"\",0.5,1,true");
}

}  // namespace csv_test
}  // namespace attnsim::report
