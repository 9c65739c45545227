#include "ask/shared_work.hpp"

#include <gtest/gtest.h>

#include "ask/figures.hpp"
#include "ask/question.hpp"

namespace attnsim {
namespace shared_work_test {

/// All that is said of an answer.
std::vector<ask::value> said(const prediction& p) {
  std::vector<ask::value> all;
  for (const auto& f : ask::figures<prediction>()) all.push_back(f.get(p));
  return all;
}

ask::question asked(const char* schedule, const char* bandwidth) {
  ask::question q{.cluster = "nd-h100-v5", .sequence = 65536, .schedule = schedule};
  q.overrides = {.nodes = 2, .set = {{"nics.bandwidth", bandwidth}}};
  q.heads = 16;
  return q;
}

TEST(shared_work, answers_are_those_of_each_question_alone) {
  known_schedules schedules;
  for (const char* bandwidth : {"50 Gb/s", "400 Gb/s"}) {
    const auto c = ask::cluster_of(asked("ring", bandwidth));
    static const auto device = std::make_shared<const device_profile>(c.device);
    shared_work work(c, device, schedules);
    for (const char* schedule : {"ring", "attention2d", "mesh", "usp", "double-ring"}) {
      auto q = asked(schedule, bandwidth);
      for (const auto mask : {mask_kind::full, mask_kind::causal}) {
        q.mask = mask;
        for (const auto pass : {pass_kind::forward, pass_kind::recompute}) {
          q.pass = pass;
          EXPECT_EQ(said(ask::predict(q, work)), said(ask::predict(q, c)))
              << schedule << " " << bandwidth;
        }
      }
    }
  }
}

TEST(shared_work, ranks_are_placed_once_a_placement_and_grid) {
  const auto c = read_cluster("nd-h100-v5", {.nodes = 2});
  shared_work work(c);
  strategy s{.schedule = "attention2d", .rows = 4, .cols = 4};
  const auto& first = work.ranks(s);
  s.tokens = token_layout::striped;
  EXPECT_EQ(&work.ranks(s), &first);
  s.placement = "rails";
  EXPECT_NE(work.ranks(s).devices(), first.devices());
  s.placement = "node-major";
  s.rows = 8, s.cols = 2;
  EXPECT_NE(&work.ranks(s), &first);
}

TEST(shared_work, limits_are_of_their_problem) {
  const auto c = read_cluster("nd-h100-v5", {.nodes = 2});
  shared_work work(c);
  const attention a{.heads = 8, .kv_heads = 8, .sequence = 65536};
  auto b = a;
  b.sequence *= 2;
  const strategy s{.schedule = "ring", .rows = 16, .cols = 1};
  const auto limit = [&](const attention& one) {
    return work.limits(one).of(s, work.ranks(s).devices(), pass_kind::forward).time;
  };
  const auto of_a = limit(a), of_b = limit(b);
  EXPECT_LT(of_a, of_b);
  EXPECT_EQ(limit(a), of_a);
  EXPECT_EQ(limit_of(c, b, s, work.ranks(s).devices(), pass_kind::forward).time, of_b);
}

}  // namespace shared_work_test
}  // namespace attnsim
