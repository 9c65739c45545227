#include "model/schedule/head_parts.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>

#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/schedule_check.hpp"

namespace attnsim {
namespace head_parts_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr attention eight_heads{.heads = 8, .kv_heads = 8, .sequence = 1024};

/// What stream `stream` does, "all_to_all0" for the first part's.
std::vector<std::string> on_stream(const schedule& s, const std::string& stream) {
  std::vector<std::string> all;
  for (const auto& op : s.program) {
    if (s.streams[static_cast<std::size_t>(op.stream)] == stream)
      all.push_back(std::string(name_of(op.kind)) + std::to_string(op.reads.front().part));
  }
  return all;
}

schedule in_parts(strategy s, int parts) {
  s.parts = parts;
  return make_schedule(s, eight_heads, pass_kind::forward);
}

TEST(head_parts, what_comes_in_goes_before_what_goes_out) {
  const auto s = in_parts({.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 2}, 4);
  EXPECT_EQ(s.parts, 4);
  EXPECT_THAT(s.streams, ElementsAre("compute", "heads"));
  EXPECT_THAT(on_stream(s, "heads"),
              ElementsAre("all_to_all0", "all_to_all1", "all_to_all2", "all_to_all0", "all_to_all3",
                          "all_to_all1", "all_to_all2", "all_to_all3"));
}

TEST(head_parts, kernels_do_not_wait_for_an_earlier_parts_results) {
  const auto s = in_parts({.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 4}, 2);
  EXPECT_THAT(on_stream(s, "compute"),
              ElementsAre("copy0", "copy1", "attention0", "attention1", "copy0", "copy1"));
}

TEST(head_parts, a_ring_between_kernels_does_not_wait_for_the_next_parts) {
  const auto s = in_parts(
      {.schedule = "composed", .rows = 3, .cols = 1, .levels = {{level_kind::keys_ring, 3}}}, 2);
  EXPECT_THAT(on_stream(s, "keys ahead"), ElementsAre("shift0", "shift1"));
  EXPECT_THAT(on_stream(s, "keys"), ElementsAre("shift0", "shift1"));
}

TEST(head_parts, of_every_schedule_compute_attention) {
  int checked = 0;
  for (const auto& one : algorithms()) {
    for (const int ulysses : {1, 2, 4}) {
      strategy s{.schedule = one.name, .ulysses = ulysses, .parts = 2};
      try {
        s = complete(s, eight_heads, 4);
      } catch (const std::runtime_error&) {
        continue;
      }
      for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
        if (!has_pass(s, pass)) continue;
        try {
          check(make_schedule(s, eight_heads, pass));
          ++checked;
        } catch (const std::invalid_argument& e) {
          EXPECT_THAT(e.what(), HasSubstr("streams"));
        }
      }
    }
  }
  EXPECT_GE(checked, 50);
}

std::vector<strategy> compositions() {
  std::vector<strategy> all;
  const std::vector<level_kind> kinds{level_kind::keys_ring, level_kind::keys_gather,
                                      level_kind::queries_gather};
  for (const auto one : kinds) {
    for (const auto two : kinds) {
      for (const int ulysses : {1, 2}) {
        for (const int parts : {1, 2}) {
          all.push_back({.schedule = "composed",
                         .ulysses = ulysses,
                         .levels = {{one, 2}, {two, 3}},
                         .parts = parts});
        }
      }
    }
  }
  return all;
}

TEST(head_parts, of_compositions_compute_attention) {
  int checked = 0;
  for (auto s : compositions()) {
    for (const auto reduction : {reduction_kind::ring, reduction_kind::all_to_all}) {
      s.reduction = reduction;
      try {
        s = complete(s, eight_heads, 6 * s.ulysses);
      } catch (const std::runtime_error& e) {
        EXPECT_THAT(e.what(), HasSubstr("one")) << "two rings, or two levels of queries";
        continue;
      }
      for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
        check(make_schedule(s, eight_heads, pass));
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, 7 * 2 * 2 * 2 * 2);
}

TEST(head_parts, not_written_are_missed) {
  auto s = make_schedule({.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 4, .parts = 2},
                         eight_heads, pass_kind::forward);
  std::erase_if(s.program, [](const operation& op) { return op.reads.front().part == 1; });
  EXPECT_THAT([&] { check(s); }, ::testing::ThrowsMessage<std::logic_error>(HasSubstr("has no o")));
}

TEST(head_parts, of_others_are_told_apart) {
  auto s = make_schedule({.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 4, .parts = 2},
                         eight_heads, pass_kind::forward);
  for (auto& op : s.program) {
    if (op.kind == op_kind::attention && op.reads.front().part == 1) op.reads[1].part = 0;
  }
  EXPECT_THROW(check(s), std::logic_error);
}

}  // namespace head_parts_test
}  // namespace attnsim
