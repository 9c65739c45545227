#include "model/printable.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace printable_test {

TEST(printable, leaves_text_as_it_is) {
  for (const auto* text :
       {"", "nd-h100-v5: 8 x h100", "größer, \xe8\xaf\xbb, \xf0\x9f\x99\x82", "\xc2\xa0", "\\n"})
    EXPECT_EQ(printable(text), text);
}

TEST(printable, writes_out_what_a_terminal_obeys) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("a\nb\rc\td\x07\x7f"), "a\\nb\\rc\\td\\x07\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");  // the escape sequences' other beginning
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "x\xe2\x81\xa6"),
            "\\u202ex\\u2066");  // turns the rest of the line
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028");
}

TEST(printable, writes_out_bytes_that_are_no_utf8) {
  EXPECT_EQ(printable("a\xff"
                      "b"),
            "a\\xffb");
  EXPECT_EQ(printable("\x80"), "\\x80");
  EXPECT_EQ(printable("\xc3"), "\\xc3");  // cut off
  EXPECT_EQ(printable("\xc3z"), "\\xc3z");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xe0\x80\x80"), "\\xe0\\x80\\x80");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(utf8, is_told_from_other_bytes) {
  EXPECT_TRUE(is_utf8("größer \x1b"));
  EXPECT_FALSE(
      is_utf8("gr\xf6\xdf"
              "er"));
}

}  // namespace printable_test
}  // namespace attnsim
