#include "model/config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/expect_error.hpp"

namespace attnsim {
namespace config_test {

config_node parse_file(const std::string& text) {
  return config_node::parse_text(text, "f.yaml");
}

TEST(config_node, typed_values) {
  const auto root =
      parse_file("s: text\ni: 3\nd: 2.5\nb: true\nt: 2 us\nl: [1, 2]\nm: {a: 1, b: 2}\nn:\n");
  EXPECT_EQ(root.get<std::string>("s"), "text");
  EXPECT_EQ(root.get<std::int64_t>("i"), 3);
  EXPECT_EQ(root.get<double>("d"), 2.5);
  EXPECT_TRUE(root.get<bool>("b"));
  EXPECT_EQ(root.get<seconds>("t"), parse<seconds>("2 us"));
  EXPECT_EQ(root.get<bool>("absent", true), true);
  EXPECT_EQ(root.get_integer("absent", 1, 7), 7);
  EXPECT_EQ(root.at("l").items()[1].as<std::int64_t>(), 2);
  EXPECT_EQ(root.at("m").entries()[1].first, "b");
  EXPECT_TRUE(root.has("s"));
  EXPECT_FALSE(root.has("n"));  // no value
  EXPECT_FALSE(root.has("absent"));
}

TEST(config_node, messages_say_where_and_what) {
  const auto root =
      parse_file("i: x\nd: inf\nb: yes\nm:\n  t: 3\n  l: [1, -2]\nn: -1 us\nz: 0 GB/s\n");
  EXPECT_ERROR(root.get<std::int64_t>("i"), input_error,
               "f.yaml:1: i: 'x': expected a whole number");
  EXPECT_ERROR(root.get<double>("d"), input_error, "f.yaml:2: d: 'inf': expected a finite number");
  EXPECT_ERROR(root.get<bool>("b"), input_error, "f.yaml:3: b: 'yes': expected true or false");
  EXPECT_ERROR(root.at("m").get<seconds>("t"), input_error,
               "f.yaml:5: m.t: '3': expected a time with its unit, such as '2 us'");
  EXPECT_ERROR(root.get<seconds>("n"), input_error,
               "f.yaml:7: n: '-1 us': expected a time of zero or more");
  EXPECT_ERROR(root.get<bandwidth>("z"), input_error,
               "f.yaml:8: z: '0 GB/s': expected more than zero");
  EXPECT_ERROR(root.get<std::string>("m"), input_error,
               "f.yaml:5: m: '{...}': expected a single value");
  EXPECT_ERROR(root.get<double>("absent"), input_error, "f.yaml:1: absent: missing");
  EXPECT_ERROR(root.at("m").at("l").items()[1].fail("", "expected better"), input_error,
               "f.yaml:6: m.l[1]: '-2': expected better");
  EXPECT_ERROR(root.at("i").items(), input_error, "f.yaml:1: i: 'x': expected a list");
  EXPECT_ERROR(root.at("i").entries(), input_error,
               "f.yaml:1: i: 'x': expected a map of keys to values");
  EXPECT_ERROR(root.at("m").allow_only({"t"}), input_error,
               "f.yaml:6: m.l: unknown key; expected one of: t");
  EXPECT_ERROR(root.at("m").allow_only({"t", "list"}), input_error,
               "f.yaml:6: m.l: unknown key; expected one of: t, list; did you mean list?");
}

TEST(config_node, ranges_and_own_parsers) {
  const auto root = parse_file("i: 3\n");
  EXPECT_EQ(root.get_within("i", 1, 3), 3);
  EXPECT_ERROR(root.get_within("i", 1, 2), input_error,
               "f.yaml:1: i: '3': expected a whole number from 1 to 2");
  EXPECT_ERROR(root.get_integer("i", 4), input_error,
               "f.yaml:1: i: '3': expected a whole number of at least 4");
  EXPECT_EQ(root.get_as("i", [](std::string_view text) { return text.size(); }), 1u);
  EXPECT_ERROR(
      root.get_as("i", [](std::string_view) -> int { throw std::invalid_argument("expected y"); }),
      input_error, "f.yaml:1: i: '3': expected y");
}

TEST(config_node, set_values_name_their_field) {
  auto root = parse_file("a: 1\nm: {b: 2}\n");
  root.set("m.b", "3");
  root.set("m.c.d", "[4, x]");
  root.set("a", "y", asked("amount"));
  EXPECT_EQ(root.at("m").get<std::int64_t>("b"), 3);
  EXPECT_EQ(root.at("m").at("c").at("d").items()[0].as<std::int64_t>(), 4);
  EXPECT_ERROR(root.at("m").at("c").at("d").items()[1].as<double>(), input_error,
               "set: m.c.d[1]: 'x': expected a number");
  EXPECT_ERROR(root.get<double>("a"), input_error, "amount: 'y': expected a number");
  EXPECT_ERROR(root.set("a.b", "1"), input_error,
               "set: 'a.b=1': expected key.path=value with keys of the file");
  EXPECT_ERROR(root.set("m.b", "[1"), input_error, "set: 'm.b=[1': expected a value in YAML");
}

TEST(config_node, files_that_cannot_be_read) {
  EXPECT_ERROR(config_node::load("no-such.yaml"), input_error,
               "no-such.yaml: cannot be read: No such file or directory");
  EXPECT_ERROR(parse_file("- 1\n"), input_error, "f.yaml:1: expected a map of keys to values");
  EXPECT_ERROR(parse_file("a: [1\n"), input_error,
               "f.yaml:2: not valid YAML: end of sequence flow not found");
  const auto path = std::filesystem::temp_directory_path() / "attnsim_config_test.yaml";
  std::ofstream(path) << "a: 1\n";
  EXPECT_EQ(config_node::load(path.string()).get<double>("a"), 1);
  std::filesystem::remove(path);
}

TEST(config_node, a_root_may_be_a_list) {
  const auto items = config_node::parse_list("- a: 1\n- a: x\n", "f.yaml").items();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_ERROR(items[1].get<double>("a"), input_error, "f.yaml:2: [1].a: 'x': expected a number");
  EXPECT_ERROR(config_node::parse_list("a: 1\n", "f.yaml"), input_error,
               "f.yaml:1: expected a list");
  EXPECT_ERROR(parse_file("- a\n"), input_error, "f.yaml:1: expected a map of keys to values");
}

TEST(config_node, refuses_a_key_that_stands_twice) {
  EXPECT_ERROR(parse_file("a: 1\nb: 2\na: 3\n"), input_error,
               "f.yaml:3: a: expected each key once; it stands in line 1 too");
  EXPECT_ERROR(parse_file("l:\n- {m: {k: 1, n: 2,\n k: 3}}\n"), input_error,
               "f.yaml:3: k: expected each key once; it stands in line 2 too");
  EXPECT_ERROR(parse_file("a: 1\n\"a\": 1\n"), input_error,
               "f.yaml:2: a: expected each key once; it stands in line 1 too");
  EXPECT_NO_THROW(parse_file("a: {k: 1}\nb: {k: 1}\n"));
  auto root = parse_file("m: {}\n");
  EXPECT_ERROR(root.set("m", "{k: 1, k: 2}"), input_error,
               "set: 'm={k: 1, k: 2}': expected each key once");
}

TEST(config_node, refuses_aliases_that_multiply) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'i'; ++c) {
    bomb += fmt::format("{0}: &{0} [", c);
    for (int i = 0; i < 10; ++i)
      bomb += fmt::format("*{}{}", static_cast<char>(c - 1), i < 9 ? ", " : "]\n");
  }
  EXPECT_ERROR(config_node::parse_text(bomb, "b.yaml"), input_error,
               "b.yaml:1: expected no aliases that multiply its values");
  EXPECT_ERROR(config_node::parse_text("a: &a {b: *a}", "b.yaml"), input_error,
               "b.yaml:1: expected no aliases that multiply its values");
  EXPECT_NO_THROW(config_node::parse_text("a: &a [1, 2]\nb: *a\nc: *a\n", "b.yaml"));
}

}  // namespace config_test
}  // namespace attnsim
