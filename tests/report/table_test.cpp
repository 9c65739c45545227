#include "report/table.hpp"

#include <gtest/gtest.h>

namespace attnsim::report {
namespace table_test {

table two_rows() {
  table t({"name", "time"});
  t.add({"ring", "12 ms"});
  t.add({"<a & \"b\">", "7 ms"});
  return t;
}

TEST(table, aligns_columns_numbers_to_the_right) {
  EXPECT_EQ(two_rows().str(),
            "name        time\n"
            "ring       12 ms\n"
            "<a & \"b\">   7 ms\n");
}

TEST(table, html_is_escaped) {
  EXPECT_EQ(two_rows().html(),
            "<table>\n<thead><tr><th>name</th><th class=\"number\">time</th></tr></thead>\n"
            "<tbody>\n<tr><td>ring</td><td class=\"number\">12 ms</td></tr>\n"
            "<tr><td>&lt;a &amp; &quot;b&quot;&gt;</td><td class=\"number\">7 ms</td></tr>\n"
            "</tbody></table>\n");
}

TEST(table, signed_numbers_and_gaps_are_numbers) {
  table t({"error", "word"});
  t.add({"-", "-"});
  t.add({"+12.5 %", "-x"});
  t.add({"-1.0 %", "y"});
  EXPECT_EQ(t.str(),
            "  error  word\n"
            "      -  -\n"
            "+12.5 %  -x\n"
            " -1.0 %  y\n");
}

TEST(table, is_empty_without_rows) {
  EXPECT_TRUE(table().empty());
  EXPECT_TRUE(table({"name"}).empty());
  EXPECT_FALSE(two_rows().empty());
}

}  // namespace table_test
}  // namespace attnsim::report
