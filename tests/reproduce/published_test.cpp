#include "reproduce/published.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::reproduce {
namespace published_test {

using ::testing::HasSubstr;

class published_table : public ::testing::Test {
 protected:
  std::vector<published_row> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_published(path_);
  }
  ~published_table() override { std::remove(path_.c_str()); }

  const std::string path_ = ::testing::TempDir() + "published_table.csv";
};

TEST_F(published_table, skips_comments_and_reads_fields_by_column) {
  const auto rows = read("# source: a paper\nmodel,tokens,value\na,8192,1.5\nb,16384,\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].text("model"), "a");
  EXPECT_EQ(rows[0].integer("tokens"), 8192);
  EXPECT_EQ(rows[0].number("value"), 1.5);
  EXPECT_EQ(rows[1].text("value"), "");
}

TEST_F(published_table, names_the_line_of_a_row_with_too_few_fields) {
  EXPECT_ERROR(read("# source\na,b\n1,2\n3\n"), input_error, path_ + ":4: '3': expected 2 fields");
}

TEST_F(published_table, names_line_and_column_of_what_is_no_number) {
  const auto rows = read("a,b\n1,2x\n");
  EXPECT_ERROR(rows[0].number("b"), input_error, path_ + ":2: b: '2x': expected a number");
}

TEST_F(published_table, names_a_missing_column) {
  const auto rows = read("a,b\n1,2\n");
  EXPECT_ERROR(rows[0].text("c"), input_error, path_ + ":2: 'c': expected a column of the table");
}

TEST(published, unknown_table_is_an_error) {
  try {
    published("nobody");
    FAIL();
  } catch (const input_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("'nobody.csv': expected a file of "));
  }
}

}  // namespace published_test
}  // namespace attnsim::reproduce
