#include "ask/fastest_tokens.hpp"

#include <gtest/gtest.h>

#include "ask/predict.hpp"
#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace fastest_tokens_test {

constexpr token_layout layouts[] = {token_layout::contiguous, token_layout::zigzag,
                                    token_layout::striped};
constexpr const char* schedules[] = {"ring", "allgather", "attention2d", "hierarchical-allgather"};

question on_eight(const char* schedule, std::int64_t sequence) {
  return {
      .cluster = "dgx-h100", .ranks = 8, .sequence = sequence, .kv_heads = 8, .schedule = schedule};
}

seconds time_of(question q, const cluster& c, token_layout tokens) {
  q.tokens = tokens;
  return predict(q, c).time;
}

TEST(fastest_tokens, are_the_fastest_by_the_closed_form) {
  for (const auto* schedule : schedules) {
    for (const std::int64_t sequence : {4096, 32768}) {
      auto q = on_eight(schedule, sequence);
      q.by = prediction_method::analytic;
      const auto c = cluster_of(q);
      const auto chosen = predict(q, c);
      for (const auto tokens : layouts)
        EXPECT_LE(chosen.time, time_of(q, c, tokens)) << schedule << " " << name_of(tokens);
      EXPECT_EQ(chosen.time, time_of(q, c, chosen.chosen.tokens));
    }
  }
}

TEST(fastest_tokens, are_simulated_where_they_are_not_the_usual_ones) {
  int others = 0;
  for (const auto* schedule : schedules) {
    const auto q = on_eight(schedule, 4096);
    const auto c = cluster_of(q);
    const auto chosen = predict(q, c);
    EXPECT_LE(chosen.time, time_of(q, c, token_layout::zigzag)) << schedule;
    if (chosen.chosen.tokens == token_layout::zigzag) continue;
    ++others;
    for (const auto tokens : layouts) EXPECT_LE(chosen.time, time_of(q, c, tokens)) << schedule;
  }
  EXPECT_GT(others, 0);
}

TEST(fastest_tokens, of_long_rings_are_the_usual_ones) {
  for (const auto* schedule : {"ring", "burst", "usp"}) {
    const auto q = on_eight(schedule, 262144);
    EXPECT_EQ(predict(q, cluster_of(q)).chosen.tokens, token_layout::zigzag) << schedule;
  }
}

// A causal mask leaves half of the work; it must not be spent on small kernel calls. On 64 ranks striped tokens are 64 of
// them.
TEST(fastest_tokens, make_a_causal_mask_no_slower_than_none) {
  for (const int ranks : {8, 64}) {
    for (const auto* schedule : {"ring", "ulysses", "allgather", "hierarchical-allgather"}) {
      auto q = on_eight(schedule, 16384);
      q.ranks = ranks;
      q.heads = q.kv_heads = 64;
      const auto c = cluster_of(q);
      const auto causal = predict(q, c).time;
      q.mask = mask_kind::full;
      EXPECT_LE(causal, predict(q, c).time) << schedule << " on " << ranks;
    }
  }
}

// 7 ranks: zigzag wants a multiple of 14.
TEST(fastest_tokens, fit_the_sequence) {
  question q{.cluster = "dgx-h100", .ranks = 7, .sequence = 1001};
  const auto c = cluster_of(q);
  EXPECT_NE(predict(q, c).chosen.tokens, token_layout::zigzag);
  q.sequence = 1000;
  EXPECT_ERROR(predict(q, c), infeasible,
               "seq: '1000': not a multiple of 7, as striped tokens over 7 ranks need; pad by 1 to "
               "1001 (0.1 % more tokens, 0.2 % more work) or cut to 994");
}

TEST(fastest_tokens, leave_what_is_asked_for) {
  auto q = on_eight("allgather", 4096);
  const auto c = cluster_of(q);
  q.tokens = token_layout::striped;
  EXPECT_EQ(predict(q, c).chosen.tokens, token_layout::striped);
  q.tokens.reset();
  q.documents = {3008, 1088};
  EXPECT_EQ(predict(q, c).chosen.tokens, strategy_of(q, layer_of(q)).tokens);
}

}  // namespace fastest_tokens_test
}  // namespace attnsim::ask
