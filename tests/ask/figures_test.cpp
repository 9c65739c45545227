#include "ask/figures.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "ask/question.hpp"

namespace attnsim::ask {
namespace figures_test {

template <typename Answer>
void expect_well_formed() {
  std::set<std::string_view> names;
  for (const auto& f : figures<Answer>()) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name << " stands there twice";
    EXPECT_FALSE(f.help.empty()) << f.name;
    EXPECT_EQ(f.name.ends_with("_s"), f.unit == "s") << f.name;
    EXPECT_EQ(f.name.find("bytes") != f.name.npos, f.unit == "bytes") << f.name;
    EXPECT_THAT(f.unit, testing::AnyOf("", "s", "bytes", "tokens/s", "TFLOP/s", "TFLOP")) << f.name;
  }
}

TEST(figures, have_one_name_help_and_the_unit_that_the_name_says) {
  expect_well_formed<prediction>();
  expect_well_formed<pass_prediction>();
  expect_well_formed<attention>();
}

/// But for how it is found: of a model, padded; and the pass, which stands beside it.
TEST(figures, of_a_problem_are_the_fields_of_a_question) {
  std::set<std::string> asked, said;
  for (const auto& f : fields()) {
    auto name = std::string(f.name);
    std::replace(name.begin(), name.end(), '-', '_');
    if (f.group == field_group::attention) asked.insert(name);
  }
  for (const auto* other : {"model", "layer", "pad", "pass"}) EXPECT_EQ(asked.erase(other), 1u);
  for (const auto& f : figures<attention>()) said.emplace(f.name);
  EXPECT_EQ(said.erase("padding"), 1u);
  EXPECT_EQ(said, asked);
}

TEST(figures, are_got_from_the_answer) {
  prediction p{.ranks = 4, .time = seconds(2)};
  p.chosen.rows = 2;
  p.chosen.cols = 3;
  p.problem = {.batch = 4, .sequence = 5, .padding = 1, .prefix = 100};
  p.passes.push_back({.memory = {.cache = byte_count(3072)}});
  for (const auto& f : figures<prediction>()) {
    if (f.name == "ranks") {
      EXPECT_EQ(f.get(p), value(std::int64_t{4}));
    }
    if (f.name == "time_s") {
      EXPECT_EQ(f.get(p), value(2.0));
    }
    if (f.name == "tokens_per_second") {
      EXPECT_EQ(f.get(p), value(8.0));  // 4 sequences of 4 tokens in 2 s
    }
    if (f.name == "time_per_token_s") {
      EXPECT_EQ(f.get(p), value(0.5));
    }
    if (f.name == "cache_bytes") {
      EXPECT_EQ(f.get(p), value(std::int64_t{3072}));
    }
    if (f.name == "grid") {
      EXPECT_EQ(f.get(p), value(whole_pair(2, 3)));
    }
    if (f.name == "tokens") {
      EXPECT_EQ(f.get(p), value(std::string(name_of(p.chosen.tokens))));
    }
  }
}

}  // namespace figures_test
}  // namespace attnsim::ask
