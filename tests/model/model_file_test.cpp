#include "model/attention/model_file.hpp"

#include <gtest/gtest.h>

#include "tests/expect_error.hpp"

namespace attnsim {
namespace {

TEST(model_file, a_listed_name_is_its_row) {
  const auto file = find_model_file("llama2-7b");
  EXPECT_TRUE(file.listed);
  EXPECT_EQ(file.name, "llama2-7b");
  EXPECT_EQ(size_under(file.root, "heads"), 32);
}

TEST(model_file, the_language_model_of_a_configuration) {
  const auto file = find_model_file(R"({"model_type": "m", "text_config": {"hidden_size": 8}})");
  EXPECT_FALSE(file.listed);
  EXPECT_EQ(file.name, "m");
  EXPECT_EQ(size_under(file.text, first_key(file.text, {"dim", "hidden_size"})), 8);
  EXPECT_EQ(first_key(file.text, {"dim", "n_embd"}), "dim");
}

TEST(model_file, sizes_are_counts) {
  const auto file = find_model_file(R"({"a": 0, "b": 2199023255552})");
  EXPECT_ERROR(size_under(file.root, "a"), input_error,
               "config.json:1: a: '0': expected a whole number of at least 1");
  EXPECT_ERROR(size_under(file.root, "b"), input_error,
               "config.json:1: b: '2199023255552': expected at most 1099511627776");
}

}  // namespace
}  // namespace attnsim
