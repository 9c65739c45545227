#include "formats/source.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim::formats {
namespace source_test {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(lines_of, numbers_lines_and_leaves_out_blank_ones) {
  const auto lines = lines_of("a\n\n \t\r\n b # c\n# d\ne", '#');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].number, 1u);
  EXPECT_EQ(lines[1].number, 4u);
  EXPECT_EQ(trimmed(lines[1].text), "b");
  EXPECT_EQ(lines[2].text, "e");
  EXPECT_EQ(lines_of("# d").size(), 1u);
}

TEST(lines_of, leaves_out_prompts_of_shells) {
  const auto lines = lines_of(
      "$ scontrol show topology\nSwitchName=a Nodes=b\nroot@node1:~# cat x\n[me@node1 ~]$ "
      "\n$\nme@node1 Nodes=$x\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].number, 2u);
  EXPECT_EQ(lines[1].number, 6u);
}

TEST(without_prompts, keeps_the_numbers_of_lines) {
  EXPECT_EQ(without_prompts("me@node1:~$ cat t.xml\n<a>\n$ \n</a>"), "\n<a>\n\n</a>");
  EXPECT_EQ(without_prompts("cost: 5 $\n# a@b: c\n"), "cost: 5 $\n# a@b: c\n");
}

TEST(first_letter, is_no_blank) {
  EXPECT_EQ(first_letter(" \n\t{"), '{');
  EXPECT_EQ(first_letter(" \n"), '\0');
}

TEST(words_of, splits_at_blanks_and_tabs) {
  EXPECT_THAT(words_of("\t a  bc\td \r"), ElementsAre("a", "bc", "d"));
  EXPECT_THAT(words_of(" "), IsEmpty());
}

TEST(split, keeps_empty_parts) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
}

TEST(to_number, takes_the_whole_text) {
  EXPECT_EQ(to_number<int>("12"), 12);
  EXPECT_EQ(to_number<double>("2.5"), 2.5);
  EXPECT_FALSE(to_number<int>("12a"));
  EXPECT_FALSE(to_number<int>(""));
  EXPECT_FALSE(to_number<int>("99999999999"));
}

TEST(fail_at, names_file_line_key_and_value) {
  const source s{"f", ""};
  EXPECT_ERROR(fail_at(s, 3, "expected more"), input_error, "f:3: expected more");
  EXPECT_ERROR(fail_at(s, 3, "k", "v", "expected w"), input_error, "f:3: k: 'v': expected w");
}

TEST(read_source, gives_plain_text) {
  const temporary_folder folder;
  EXPECT_EQ(read_source(folder.write("f",
                                     "\xef\xbb\xbf\x1b[4ma\x1b[0m\xc2\xa0"
                                     "b\r\n"))
                .text,
            "a b\n");
}

TEST(read_source, refuses_what_cannot_be_read) {
  EXPECT_ERROR(read_source("no-such-file"), input_error,
               "no-such-file: cannot be read: No such file or directory");
  const std::string large = testing::TempDir() + "large";
  std::ofstream(large).seekp((64 << 20) + 1).put('x');
  EXPECT_ERROR(read_source(large), input_error, large + ": larger than 64 MiB");
  std::remove(large.c_str());
}

}  // namespace source_test
}  // namespace attnsim::formats
