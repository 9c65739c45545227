#include "model/schedule/latent_keys.hpp"

#include <gtest/gtest.h>

#include "model/cluster/cluster.hpp"
#include "model/cost/local.hpp"
#include "model/cost/matmul.hpp"
#include "model/cost/memory.hpp"
#include "model/cost/volume.hpp"
#include "model/cost/workload.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/schedule_check.hpp"
#include "tests/every_strategy.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace latent_keys_test {

/// DeepSeek-V3's heads, of 8 tokens a rank.
attention layer(int ranks) {
  return {.heads = 128,
          .kv_heads = 128,
          .head_dim = 192,
          .v_head_dim = 128,
          .sequence = 8 * ranks,
          .mask = mask_kind::full,
          .latent_rank = 512,
          .rotary = 64};
}

strategy sending(const std::string& schedule, int rows, int cols, key_form form) {
  return {.schedule = schedule,
          .rows = rows,
          .cols = cols,
          .tokens = token_layout::contiguous,
          .keys_sent = form};
}

std::string text_of(const schedule& s) {
  std::string text;
  for (const auto& op : s.program) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(op.kind));
    for (const auto& o : op.reads) {
      if (o.what != tensor::o && o.what != tensor::lse) text += " " + std::string(name_of(o.what));
    }
  }
  return text;
}

TEST(latent_keys, travel_and_are_expanded_where_they_arrive) {
  const auto s =
      make_schedule(sending("ring", 3, 1, key_form::latent), layer(3), pass_kind::forward);
  check(s);
  EXPECT_EQ(
      text_of(s),
      "shift latent, attention q k v, shift latent, expand latent expansion, attention q k v, "
      "expand latent expansion, attention q k v, copy");
}

TEST(latent_keys, of_all_ranks_are_expanded_at_once_after_an_all_gather) {
  const auto s =
      make_schedule(sending("allgather", 4, 1, key_form::latent), layer(4), pass_kind::forward);
  check(s);
  EXPECT_EQ(text_of(s), "all_gather latent, expand latent expansion, attention q k v");
}

// 8 tokens of 576 elements in 2 bytes, three hops; expanded 128 heads of 192 and 128.
TEST(latent_keys, weigh_their_elements) {
  const auto sent = [](const std::string& schedule, key_form form) {
    const auto s = sending(schedule, 4, 1, form);
    const auto program = make_schedule(s, layer(4), pass_kind::forward);
    const auto bytes =
        workload(program, layer(4), token_layout::contiguous, true).bytes_sent(0).value();
    std::int64_t told = 0;
    for (const auto& part : volume_of(s, layer(4), pass_kind::forward).parts) told += part.bytes;
    EXPECT_EQ(told, bytes) << schedule;
    return bytes;
  };
  for (const auto* schedule : {"ring", "allgather"}) {
    EXPECT_EQ(sent(schedule, key_form::latent), 3 * 8 * 576 * 2);
    EXPECT_EQ(sent(schedule, key_form::expanded), 3 * 8 * 128 * (192 + 128) * 2);
  }
}

// A hop's 8 tokens x 512 x 128 heads of 128 + 128, and 64 rotary elements for each head in 2 bytes.
TEST(latent_keys, take_a_matrix_product) {
  const auto c = read_cluster("dgx-h100");
  const auto a = layer(4);
  const auto s = make_schedule(sending("ring", 4, 1, key_form::latent), a, pass_kind::forward);
  const workload w(s, a, token_layout::contiguous, true);
  const local_costs costs(w, c.device, nullptr, run_start::in_sequence);
  const auto expected =
      product_time(c.device, {.rows = 8, .cols = 128 * 256, .inner = 512}, product_type::half) +
      c.device.memory_time(byte_count(8 * 128 * 64 * 2));
  int expansions = 0;
  for (std::size_t op = 0; op < s.program.size(); ++op) {
    if (s.program[op].kind != op_kind::expand) continue;
    ++expansions;
    EXPECT_EQ(costs.time(op, 0), expected);
  }
  EXPECT_EQ(expansions, 3);
}

TEST(latent_keys, all_schedules_that_send_keys_stay_right) {
  int turn = 0;
  for (const int ranks : {2, 4, 6, 9}) {
    for (auto s : every_strategy(ranks, layer(ranks))) {
      s.keys_sent = key_form::latent;
      if (!refusal(s, layer(ranks)).empty()) continue;
      ++turn;
      EXPECT_NO_THROW(check(make_schedule(s, layer(ranks), pass_kind::forward)))
          << s.schedule << ' ' << s.rows << 'x' << s.cols;
    }
  }
  EXPECT_GT(turn, 30);
}

// Of a cache there are latents only: all is expanded, the rank's own too, whatever travels.
TEST(latent_keys, of_a_cached_prefix_are_expanded_at_home_too) {
  auto a = layer(3);
  a.prefix = 48;
  const auto ring = [&](key_form form) {
    const auto s = make_schedule(sending("ring", 3, 1, form), a, pass_kind::forward);
    check(s);
    return text_of(s);
  };
  EXPECT_EQ(ring(key_form::latent),
            "shift latent, expand latent expansion, attention q k v, shift latent, "
            "expand latent expansion, attention q k v, expand latent expansion, attention q k v, "
            "copy");
  EXPECT_EQ(ring(key_form::expanded),
            "expand latent expansion, shift k v, attention q k v, shift k v, attention q k v, "
            "attention q k v, copy");
}

std::int64_t bytes_sent(const strategy& s, const attention& a) {
  const auto program = make_schedule(s, a, pass_kind::forward);
  check(program);
  const auto bytes = workload(program, a, s.tokens, true).bytes_sent(0).value();
  std::int64_t told = 0;
  for (const auto& part : volume_of(s, a, pass_kind::forward).parts) told += part.bytes;
  EXPECT_EQ(told, bytes) << s.schedule;
  return bytes;
}

// 8 new and 16 cached tokens a rank of 576 elements in 2 bytes, three hops; the cache has as many. In fp8 between ranks half of it.
TEST(latent_keys, of_a_cached_prefix_weigh_their_elements) {
  auto a = layer(4);
  a.prefix = 64;
  for (const auto* schedule : {"ring", "allgather"}) {
    const auto s = sending(schedule, 4, 1, key_form::latent);
    EXPECT_EQ(bytes_sent(s, a), 3 * 24 * 576 * 2);
    const auto program = make_schedule(s, a, pass_kind::forward);
    EXPECT_EQ(peak_memory(workload(program, a, s.tokens, true)).cache.value(), 24 * 576 * 2);
    auto narrow = a;
    narrow.wire_dtype = data_type::fp8;
    EXPECT_EQ(bytes_sent(s, narrow), 3 * 24 * 576);
  }
}

// Four ranks that exchange heads: 3/4 of the queries and outputs of 8 tokens, and to each of three others the latents of the 8,
// whatever is cached.
TEST(latent_keys, through_an_exchange_of_heads_are_gathered) {
  auto a = layer(4);
  auto s = sending("ulysses", 1, 1, key_form::latent);
  s.ulysses = 4;
  for (const std::int64_t prefix : {0, 64}) {
    a.prefix = prefix;
    EXPECT_EQ(text_of(make_schedule(s, a, pass_kind::forward)),
              "copy q, all_to_all q, all_gather latent, expand latent expansion, attention q k v, "
              "all_to_all, copy");
    EXPECT_EQ(bytes_sent(s, a), 3 * (8 * 128 * (192 + 128) * 2 / 4 + 8 * 576 * 2));
  }
  s.keys_sent = key_form::expanded;
  EXPECT_EQ(refusal(s, a), "exchanges heads of what is cached as latents: send latents");
  EXPECT_ERROR(
      complete({.schedule = "ulysses"}, a, 4), infeasible,
      "schedule: 'ulysses': no grid of 4 ranks will do; exchanges heads of what is cached as "
      "latents: send latents");
  a.prefix = 0;
  EXPECT_EQ(bytes_sent(s, a), 3 * (8 * 128 * 2 * (192 + 128) * 2 / 4));
}

TEST(latent_keys, are_refused_where_there_are_none) {
  auto a = layer(4);
  const auto s = sending("ring", 4, 1, key_form::latent);
  EXPECT_EQ(refusal(s, a), "");
  EXPECT_EQ(refusal(sending("passq-ring", 4, 1, key_form::latent), a), "sends no keys");
  auto in_parts = s;
  in_parts.parts = 2;
  EXPECT_EQ(refusal(in_parts, a), "sends latents once, not by parts of the heads");
  a.latent_rank = 0;
  EXPECT_EQ(refusal(s, a), "has no latents to send: expected a model with latent attention");
  EXPECT_ERROR(make_schedule(s, layer(4), pass_kind::backward), input_error,
               "pass: 'backward': expected forward with latents sent");
}

}  // namespace latent_keys_test
}  // namespace attnsim
