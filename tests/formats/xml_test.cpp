#include "formats/xml.hpp"

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"

namespace attnsim::formats {
namespace xml_test {

TEST(xml_file, reads_attributes_and_knows_lines) {
  const xml_file xml({"f", "<!-- c -->\n<a>\n<b n=\"3\" x=\"2.5\"/></a>"}, "a");
  const auto b = xml.root().child("b");
  EXPECT_EQ(xml.line_of(b), 3u);
  EXPECT_EQ(xml.integer(b, "n", 0, 3), 3);
  EXPECT_EQ(xml.number(b, "x", 0, 3), 2.5);
  EXPECT_ERROR(xml.integer(b, "n", 4, 9), input_error,
               "f:3: <b> n: '3': expected a whole number from 4 to 9");
  EXPECT_ERROR(xml.number(b, "x", 4, 9), input_error,
               "f:3: <b> x: '2.5': expected a number from 4 to 9");
  EXPECT_ERROR(xml.text(b, "y"), input_error, "f:3: <b> y: missing");
}

TEST(xml_file, refuses_declarations_so_entities_cannot_expand) {
  const std::string laughs =
      "<!DOCTYPE a [<!ENTITY x \"ha\"><!ENTITY y \"&x;&x;\">]>\n<a n=\"&y;\"/>";
  EXPECT_ERROR(xml_file({"f", laughs}, "a"), input_error,
               "f:1: expected XML without declarations of its own (<!DOCTYPE ... [...]>)");
  EXPECT_NO_THROW(xml_file({"f", "<!DOCTYPE a SYSTEM \"a.dtd\"><a/>"}, "a"));
}

TEST(xml_file, refuses_other_roots_and_deep_nesting) {
  EXPECT_ERROR(xml_file({"f", "\n<b/>"}, "a"), input_error, "f:2: expected the element <a>");
  EXPECT_ERROR(xml_file({"f", ""}, "a"), input_error,
               "f:1: not well-formed XML: No document element found; is the file cut short?");
  std::string deep, close;
  for (int i = 0; i < 70; ++i) {
    deep += "<a>";
    close += "</a>";
  }
  EXPECT_ERROR(xml_file({"f", deep + close}, "a"), input_error, "f:1: nested more than 64 deep");
}

TEST(xml_root_name, skips_what_comes_before) {
  EXPECT_EQ(xml_root_name("\xef\xbb\xbf<?xml version='1.0'?>\n<!DOCTYPE p><!-- <q> -->\n<r s='1'>"),
            "r");
  EXPECT_EQ(xml_root_name("<!DOCTYPE p [<!ENTITY x \"y\"> ]><r/>"), "r");
  EXPECT_EQ(xml_root_name("<r/>"), "r");
  EXPECT_EQ(xml_root_name("text <r/>"), "");
  EXPECT_EQ(xml_root_name("<!-- open"), "");
}

}  // namespace xml_test
}  // namespace attnsim::formats
