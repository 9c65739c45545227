#include "formats/gzip.hpp"

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

using namespace std::string_literals;

namespace attnsim::formats {
namespace gzip_test {

/// `printf 'hello\n' | gzip -n`
const auto hello =
    "\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\0\x20\x30\x3a\x36\x06\0\0\0"s;

TEST(unpacked, leaves_other_bytes_as_they_are) {
  EXPECT_EQ(unpacked("hello\n", "f"), "hello\n");
  EXPECT_EQ(unpacked("", "f"), "");
  EXPECT_EQ(unpacked("\x1f", "f"), "\x1f");
}

TEST(unpacked, unpacks_one_member_or_several) {
  EXPECT_EQ(unpacked(hello, "f"), "hello\n");
  EXPECT_EQ(unpacked(hello + hello, "f"), "hello\nhello\n");
}

TEST(unpacked, refuses_files_that_are_cut_or_broken) {
  EXPECT_ERROR(unpacked(hello.substr(0, 12), "f.gz"), input_error,
               "f.gz: not a whole gzip file: cut short");
  EXPECT_ERROR(unpacked(hello + "more", "f.gz"), input_error,
               "f.gz: not a whole gzip file: incorrect header check");
  auto broken = hello;
  broken[18] ^= 1;  // of the checksum
  EXPECT_ERROR(unpacked(broken, "f.gz"), input_error,
               "f.gz: not a whole gzip file: incorrect data check");
}

}  // namespace gzip_test
}  // namespace attnsim::formats
