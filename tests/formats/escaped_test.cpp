#include "formats/escaped.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace escaped_test {

TEST(escaped, text_of_xml) {
  EXPECT_EQ(escaped("a <b> & \"c\"'"), "a &lt;b&gt; &amp; &quot;c&quot;'");
  EXPECT_EQ(escaped("\ta\nb\x1b\x01\xc3\xa9"), "\ta\nb??\xc3\xa9");
}

}  // namespace escaped_test
}  // namespace attnsim
