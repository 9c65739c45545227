#include "ask/field.hpp"

#include <gtest/gtest.h>

#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace {

struct asked_colour {
  std::string colour;
};

std::vector<std::string> two_colours() {
  return {"red", "blue"};
}

field_of<asked_colour> colour_field() {
  return {.name = "colour",
          .group = field_group::reading,
          .read = [](asked_colour& q, const std::string& text) { q.colour = text; },
          .choices = two_colours};
}

TEST(field, is_set_to_one_of_its_choices) {
  asked_colour q;
  set(q, colour_field(), "red");
  EXPECT_EQ(q.colour, "red");
  EXPECT_ERROR(set(q, colour_field(), "bleu"), input_error,
               "colour: 'bleu': expected one of: red, blue; did you mean blue?");
  EXPECT_EQ(q.colour, "red");
}

TEST(field, that_is_open_takes_others) {
  asked_colour q;
  auto f = colour_field();
  f.is_open = true;
  set(q, f, "green");
  EXPECT_EQ(q.colour, "green");
}

TEST(field, says_what_its_reader_expects) {
  asked_colour q;
  const field_of<asked_colour> f{.name = "colour",
                                 .group = field_group::reading,
                                 .read = [](asked_colour&, const std::string&) {
                                   throw std::invalid_argument("expected a colour");
                                 }};
  EXPECT_ERROR(set(q, f, "7"), input_error, "colour: '7': expected a colour");
}

}  // namespace
}  // namespace attnsim::ask
