#include "model/spelling.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace spelling_test {

const std::vector<std::string> schedules{"ring", "mesh", "attention2d", "attention2d-overlap",
                                         "double-ring"};

TEST(nearest, forgives_a_third_of_the_letters) {
  EXPECT_EQ(nearest("ring", schedules), "ring");
  EXPECT_EQ(nearest("rin", schedules), "ring");
  EXPECT_EQ(nearest("rinng", schedules), "ring");
  EXPECT_EQ(nearest("ting", schedules), "ring");
  EXPECT_EQ(nearest("rign", schedules), "ring");  // two neighbours swapped are one mistake
  EXPECT_EQ(nearest("Mesh", schedules), "mesh");
  EXPECT_EQ(nearest("RIGN", schedules), "ring");
  EXPECT_EQ(nearest("attenton2", schedules), "attention2d");
  EXPECT_EQ(nearest("attention2d_overlap", schedules), "attention2d-overlap");
  EXPECT_EQ(nearest("gnir", schedules), "");
  EXPECT_EQ(nearest("ulysses", schedules), "");
}

TEST(nearest, takes_the_nearest_of_several_and_of_these_the_first) {
  EXPECT_EQ(nearest("bat", {"bart", "cat", "bats"}), "bart");
  EXPECT_EQ(nearest("bart", {"bat", "bars", "bart"}), "bart");
}

TEST(nearest, completes_a_beginning) {
  EXPECT_EQ(nearest("att", schedules), "attention2d");
  EXPECT_EQ(nearest("d", schedules), "double-ring");
  EXPECT_EQ(nearest("", schedules), "");
}

TEST(nearest, of_two_letters_is_exact) {
  EXPECT_EQ(nearest("tq", {"tp"}), "");
  EXPECT_EQ(nearest("tpp", {"tp"}), "tp");
}

TEST(nearest, refuses_to_ponder_a_novel) {
  EXPECT_EQ(nearest(std::string(1 << 20, 'r'), schedules), "");
}

TEST(expected_one_of, lists_all_and_asks) {
  EXPECT_EQ(expected_one_of("rong", {"ring", "mesh"}),
            "expected one of: ring, mesh; did you mean ring?");
  EXPECT_EQ(expected_one_of("?", {"ring", "mesh"}), "expected one of: ring, mesh");
}

TEST(names_in, are_those_of_a_table) {
  struct row {
    std::string_view name;
  };
  const row table[] = {{"a"}, {"b"}};
  EXPECT_EQ(names_in(table), (std::vector<std::string>{"a", "b"}));
}

}  // namespace spelling_test
}  // namespace attnsim
