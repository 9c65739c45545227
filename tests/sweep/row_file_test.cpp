#include "sweep/row_file.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>

#include "model/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim::sweep {
namespace row_file_test {

using testing::ElementsAre;
using testing::IsEmpty;

struct row_files : testing::Test {
  row_file open(std::size_t rows, bool resume, const std::string& header = "key,value") const {
    return {path, header, rows, resume, [](std::size_t i) { return std::to_string(i) + ","; }};
  }

  temporary_folder folder;
  std::string path = folder.file("out.csv");
};

TEST_F(row_files, hold_rows_in_order) {
  auto file = open(3, false);
  for (const auto* row : {"2,c", "0,a", "1,b"}) file.add(static_cast<std::size_t>(*row - '0'), row);
  EXPECT_THAT(file.missing(), IsEmpty());
  EXPECT_EQ(file.text(), "key,value\n0,a\n1,b\n2,c\n");
}

TEST_F(row_files, outlive_a_kill) {
  open(4, false).add(2, "2,c");
  EXPECT_THAT(open(4, true).missing(), ElementsAre(0, 1, 3));
  EXPECT_THAT(open(4, false).missing(), ElementsAre(0, 1, 2, 3));
}

/// What a link in a shared folder names is nobody's rows.
TEST_F(row_files, are_never_written_through_a_link) {
  const auto victim = folder.write("victim", "untouched");
  for (const bool resume : {false, true}) {
    std::filesystem::create_symlink("victim", folder.file("out.csv.rows"));
    {
      auto file = open(1, resume);
      file.add(0, "0,a");
      file.close();
    }
    EXPECT_FALSE(std::filesystem::exists(folder.file("out.csv.rows")));
    std::ifstream stream(victim);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "untouched");
  }
}

TEST_F(row_files, need_a_file_that_can_be_written) {
  std::filesystem::create_directory(folder.file("out.csv.rows"));
  EXPECT_ERROR(open(1, false), input_error,
               "--out: '" + folder.file("out.csv.rows") +
                   "': expected a file that can be written (File exists)");
}

TEST_F(row_files, do_not_count_a_row_that_was_cut_off) {
  folder.write("out.csv.rows", "key,value\n1,1,b\n0,0,a and so o");
  {
    auto file = open(2, true);
    EXPECT_THAT(file.missing(), ElementsAre(0));
    file.add(0, "0,a and so on");
  }
  EXPECT_EQ(open(2, true).text(), "key,value\n0,a and so on\n1,b\n");
}

TEST_F(row_files, begin_anew_after_a_header_that_was_cut_off) {
  folder.write("out.csv.rows", "key,va");
  open(1, true).add(0, "0,a");
  EXPECT_EQ(open(1, true).text(), "key,value\n0,a\n");
}

TEST_F(row_files, go_on_with_a_finished_file) {
  folder.write("out.csv", "key,value\n0,a\n");
  EXPECT_THAT(open(2, true).missing(), ElementsAre(1));
  EXPECT_THAT(open(2, true).missing(), ElementsAre(1));  // from the rows by then
}

TEST_F(row_files, refuse_another_sweeps) {
  folder.write("out.csv.rows", "key,value\n0,7,a\n");
  EXPECT_ERROR(open(2, true), input_error,
               "--resume: '" + path +
                   ".rows': expected rows of this sweep; without --resume it begins anew");
  EXPECT_THROW(open(2, true, "key,other"), input_error);
}

TEST_F(row_files, leave_nothing_behind) {
  auto file = open(0, false);
  file.close();
  EXPECT_FALSE(std::filesystem::exists(path + ".rows"));
}

TEST(row_file, must_be_writable) {
  EXPECT_THROW(row_file("/nowhere/out.csv", "key", 1, false, {}), input_error);
}

}  // namespace row_file_test
}  // namespace attnsim::sweep
