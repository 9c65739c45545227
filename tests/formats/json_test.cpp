#include "formats/json.hpp"

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"

namespace attnsim::formats {
namespace json_test {

TEST(parse_json, drops_what_the_filter_refuses) {
  const auto j =
      parse_json({"f", "{\"a\": [{\"x\": 1}, {\"y\": 2}], \"b\": {\"x\": 3}}"}, 3,
                 [](int depth, const auto& value) { return depth != 2 || value.contains("y"); });
  EXPECT_EQ(j["a"].size(), 1u);
  EXPECT_EQ(j["a"][0]["y"], 2);
  EXPECT_EQ(j["b"]["x"], 3);
}

TEST(parse_json, refuses_bad_text) {
  EXPECT_ERROR(parse_json({"f", "{\n\"a\": }"}, 9), input_error, "f:2: not valid JSON");
  EXPECT_ERROR(parse_json({"f", ""}, 9), input_error, "f:1: not valid JSON");
  EXPECT_ERROR(parse_json({"f", "[[[1]]]"}, 2), input_error, "f:1: expected nesting of at most 2");
  EXPECT_ERROR(parse_json({"f", "[8E8881]"}, 9), input_error,
               "f:1: expected numbers that a double holds");
}

}  // namespace json_test
}  // namespace attnsim::formats
