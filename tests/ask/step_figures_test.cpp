#include "ask/step_figures.hpp"

#include <gtest/gtest.h>

namespace attnsim::ask {
namespace {

value figure_called(const step_answer& a, std::string_view name) {
  for (const auto& f : figures<step_answer>()) {
    if (f.name == name) return f.get(a);
  }
  return "no such figure";
}

TEST(step_figures, of_an_answer) {
  step_answer a{.model = "m", .cut = {.tensor = 2, .data = 4}, .time = seconds(2)};
  a.parts[static_cast<std::size_t>(step_part::attention)] = 0.5;
  a.parts[static_cast<std::size_t>(step_part::tensor)] = 0.25;
  a.parts[static_cast<std::size_t>(step_part::data)] = 0.125;
  a.memory.optimizer = 12;
  EXPECT_EQ(figure_called(a, "ranks"), value(std::int64_t{8}));
  EXPECT_EQ(figure_called(a, "step_time_s"), value(2.0));
  EXPECT_EQ(figure_called(a, "attention_share"), value(0.25));
  EXPECT_EQ(figure_called(a, "peak_memory_bytes"), value(std::int64_t{12}));
  const auto parts = std::get<std::vector<part>>(figure_called(a, "parts"));
  EXPECT_EQ(parts[3], (part{"exposed_communication_s", 0.375}));
}

TEST(step_figures, have_names_of_their_own) {
  for (const auto& f : figures<step_answer>()) {
    int same = 0;
    for (const auto& other : figures<step_answer>()) same += f.name == other.name ? 1 : 0;
    EXPECT_EQ(same, 1) << f.name;
  }
}

}  // namespace
}  // namespace attnsim::ask
