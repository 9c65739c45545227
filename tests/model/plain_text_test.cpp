#include "model/plain_text.hpp"

#include <gtest/gtest.h>

using namespace std::string_literals;

namespace attnsim {
namespace plain_text_test {

TEST(plain_text, stays) {
  const auto text =
      "a\tb \xc3\xa9\xe2\x82\xac\n\n\xf0\x9f\x98\x80 \xff\n"s;  // e acute, euro, emoji, no UTF-8
  EXPECT_EQ(plain_text(text), text);
  EXPECT_EQ(plain_text(""), "");
}

TEST(plain_text, loses_terminal_escapes) {
  EXPECT_EQ(plain_text("\t\x1b[4mGPU0\tGPU1\x1b[0m\n"), "\tGPU0\tGPU1\n");
  EXPECT_EQ(plain_text("\x1b[1;38;5;196mred\x1b[m \x1b[?25l\x1b[2K\x1b[10;2Hx"), "red x");
  EXPECT_EQ(plain_text("\x1b]0;user@host: ~\a$ \x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\"),
            "$ link");
  EXPECT_EQ(plain_text("\x1b(Ba\x1b=b\x1b"
                       "7c"),
            "abc");
}

TEST(plain_text, escapes_that_are_cut_short_take_no_more_than_their_line) {
  EXPECT_EQ(plain_text("a\x1b"), "a");
  EXPECT_EQ(plain_text("a\x1b[1;"), "a");
  EXPECT_EQ(plain_text("a\x1b[\nb"), "a\nb");
  EXPECT_EQ(plain_text("a\x1b]0;title\nb"), "a\nb");
  EXPECT_EQ(plain_text("a\x1b\nb"), "a\nb");
}

TEST(plain_text, has_one_end_of_line) {
  EXPECT_EQ(plain_text("a\r\nb\r\r\nc\rd\r\n"), "a\nb\nc\nd\n");
  EXPECT_EQ(plain_text("a\r"), "a\n");
}

TEST(plain_text, has_plain_spaces_and_no_marks) {
  EXPECT_EQ(plain_text("\xef\xbb\xbfGPU0\xc2\xa0X\xe2\x80\xafY\xe2\x80\x87Z\xe2\x80\x8b"),
            "GPU0 X Y Z");
}

TEST(plain_text, is_utf_8_of_utf_16) {
  EXPECT_EQ(plain_text("\xff\xfe"
                       "a\0\xe9\0\r\0\n\0"s),
            "a\xc3\xa9\n");
  EXPECT_EQ(plain_text("\xfe\xff\0a\0\xa0\0b\0"s), "a b");
}

}  // namespace plain_text_test
}  // namespace attnsim
