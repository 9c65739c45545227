#include "model/schedule/wire_type.hpp"

#include <gtest/gtest.h>

#include "model/cost/workload.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/schedule_check.hpp"
#include "tests/every_strategy.hpp"

namespace attnsim {
namespace wire_type_test {

constexpr auto fp8 = data_type::fp8, bf16 = data_type::bf16;

attention layer(data_type computed, std::optional<data_type> wire) {
  return {.heads = 4,
          .kv_heads = 4,
          .head_dim = 16,
          .sequence = 96,
          .mask = mask_kind::full,
          .dtype = computed,
          .wire_dtype = wire};
}

strategy ring_of_three() {
  return {.schedule = "ring", .rows = 3, .cols = 1, .tokens = token_layout::contiguous};
}

/// "copy k v > wire, shift k v": what each operation reads, and of copies of it into what.
std::string text_of(const schedule& s) {
  std::string text;
  for (const auto& op : s.program) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(op.kind));
    for (const auto& o : op.reads) {
      if (is_input(o.what)) text += " " + std::string(name_of(o.what));
    }
    if (op.kind != op_kind::copy || !is_input(op.writes.front().what)) continue;
    text += s.buffer_of(op.writes.front()).format == precision::wire ? " > wire" : " > kernel";
  }
  return text;
}

std::string ring(const attention& a) {
  const auto s = make_schedule(ring_of_three(), a, pass_kind::forward);
  check(s);
  return text_of(s);
}

TEST(wire_type, of_the_kernels_changes_nothing) {
  EXPECT_EQ(ring(layer(bf16, {})),
            "shift k v, attention q k v, shift k v, attention q k v, attention q k v, copy");
  EXPECT_EQ(ring(layer(bf16, bf16)), ring(layer(bf16, {})));
  EXPECT_EQ(ring(layer(fp8, {})), ring(layer(bf16, {})));
}

/// What was received is cast for the kernel and sent on as it came.
TEST(wire_type, narrower_than_in_kernels) {
  EXPECT_EQ(
      ring(layer(bf16, fp8)),
      "copy k v > wire, shift k v, attention q k v, shift k v, copy k v > kernel, attention q "
      "k v, copy k v > kernel, attention q k v, copy");
}

/// Queries are cast once, the own keys before their kernel.
TEST(wire_type, wider_than_in_kernels) {
  EXPECT_EQ(ring(layer(fp8, bf16)),
            "shift k v, copy q k v > kernel, attention q k v, shift k v, copy k v > kernel, "
            "attention q k v, copy k v > kernel, attention q k v, copy");
}

// A rank's share of K or V: 32 tokens x 4 heads x 16 elements = 2048. Both go 2 hops: 8192 numbers.
TEST(wire_type, decides_what_keys_and_values_weigh_between_ranks) {
  const auto sent = [](data_type computed, std::optional<data_type> wire, pass_kind pass) {
    const auto a = layer(computed, wire);
    const auto s = make_schedule(ring_of_three(), a, pass);
    return workload(s, a, token_layout::contiguous, true).bytes_sent(0).value();
  };
  EXPECT_EQ(sent(bf16, {}, pass_kind::forward), 8192 * 2);
  EXPECT_EQ(sent(bf16, fp8, pass_kind::forward), 8192);
  EXPECT_EQ(sent(fp8, {}, pass_kind::forward), 8192);
  EXPECT_EQ(sent(fp8, bf16, pass_kind::forward), 8192 * 2);
  // backward, their gradients go 3 hops in 16 bits
  EXPECT_EQ(sent(bf16, fp8, pass_kind::backward), 8192 + 8192 / 2 * 3 * 2);
}

// 2048 numbers each of K and V: own ones from 2 bytes to 1, received ones twice from 1 to 2.
TEST(wire_type, casts_read_and_write_as_other_copies_do) {
  const auto a = layer(bf16, fp8);
  const auto s = make_schedule(ring_of_three(), a, pass_kind::forward);
  const workload w(s, a, token_layout::contiguous, true);
  std::int64_t traffic = 0;
  int calls = 0;
  for (const auto& op : s.program) {
    if (op.kind != op_kind::copy || !is_input(op.writes.front().what)) continue;
    traffic += w.memory_calls_of(op).traffic.value();
    calls += w.memory_calls_of(op).count;
  }
  EXPECT_EQ(traffic, 3 * 2 * 2048 * 3);
  EXPECT_EQ(calls, 3 * 2);
}

TEST(wire_type, all_schedules_stay_right) {
  for (const int ranks : {2, 4, 6}) {
    for (const auto& [computed, wire] : {std::pair(bf16, fp8), std::pair(fp8, bf16)}) {
      auto a = layer(computed, wire);
      for (const auto& s : every_strategy(ranks, a)) {
        for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
          if (has_pass(s, pass)) EXPECT_NO_THROW(check(make_schedule(s, a, pass))) << s.schedule;
        }
      }
    }
  }
}

}  // namespace wire_type_test
}  // namespace attnsim
