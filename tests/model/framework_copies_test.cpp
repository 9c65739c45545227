#include "model/schedule/framework_copies.hpp"

#include <gmock/gmock.h>

#include "model/cost/local.hpp"
#include "model/cost/memory.hpp"
#include "model/cost/workload.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/schedule_check.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace {

using joining = framework_copies::joining;

const attention copied_layer{
    .heads = 4, .kv_heads = 4, .head_dim = 16, .sequence = 64, .mask = mask_kind::full};

schedule with_copies(const strategy& s, pass_kind pass, const attention& a = copied_layer) {
  return make_schedule(complete(s, a, s.rows * s.cols * s.ulysses), a, pass);
}

/// "shift k v, attention q k v, ...": what each operation reads.
std::string reads_of(const schedule& s) {
  std::string text;
  for (const auto& op : s.program) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(op.kind));
    for (const auto& o : op.reads) text += " " + std::string(name_of(o.what));
  }
  return text;
}

strategy ring_of_two(joining joined) {
  return {.schedule = "ring",
          .rows = 2,
          .cols = 1,
          .tokens = token_layout::contiguous,
          .copies = {.joined = joined}};
}

TEST(framework_copies, keys_and_values_are_joined_before_they_are_first_sent) {
  const auto of = [](joining j) {
    return reads_of(with_copies(ring_of_two(j), pass_kind::forward));
  };
  EXPECT_EQ(of(joining::none), "shift k v, attention q k v, attention q k v o lse, copy o lse");
  EXPECT_EQ(of(joining::first),
            "copy k v, shift k v, attention q k v, attention q k v o lse, copy o lse");
  auto three = ring_of_two(joining::first);
  three.rows = 3;
  const auto longer = copied_layer.sequence * 3 / 2;
  auto a = copied_layer;
  a.sequence = longer;
  EXPECT_EQ(reads_of(with_copies(three, pass_kind::forward, a)),
            "copy k v, shift k v, attention q k v, shift k v, attention q k v o lse, attention q k "
            "v o lse, copy o lse");
}

TEST(framework_copies, or_every_time_and_their_gradients_too) {
  EXPECT_EQ(
      reads_of(with_copies(ring_of_two(joining::every), pass_kind::backward)),
      "delta d_o o, copy k v, shift k v, attention_backward q d_o lse delta k v, copy d_k d_v, "
      "shift d_k d_v, attention_backward q d_o lse delta k v d_q, accumulate d_k d_v d_k d_v, "
      "copy d_k d_v, shift d_k d_v, copy d_q, copy d_k d_v");
}

TEST(framework_copies, of_what_collectives_bring_and_take) {
  const strategy s{.schedule = "allgather",
                   .rows = 2,
                   .cols = 1,
                   .tokens = token_layout::contiguous,
                   .copies = {.gathered = true, .scattered = true}};
  EXPECT_EQ(reads_of(with_copies(s, pass_kind::forward)),
            "all_gather k v, copy k v, attention q k v");
  EXPECT_EQ(
      reads_of(with_copies(s, pass_kind::backward)),
      "delta d_o o, all_gather k v, copy k v, attention_backward q d_o lse delta k v, copy d_k "
      "d_v, reduce_scatter d_k d_v, copy d_k d_v");
  auto joined = s;
  joined.copies.joined = joining::every;
  EXPECT_EQ(reads_of(with_copies(joined, pass_kind::forward)),
            "copy k v, all_gather k v, copy k v, attention q k v");
  joined.copies = {.joined = joining::first};
  EXPECT_EQ(reads_of(with_copies(joined, pass_kind::forward)), "all_gather k v, attention q k v");
}

/// Chunks of zigzag tokens are put in order by the algorithm.
TEST(framework_copies, none_where_the_algorithm_copies) {
  auto causal = copied_layer;
  causal.mask = mask_kind::causal;
  strategy s{.schedule = "allgather", .rows = 2, .cols = 1, .tokens = token_layout::zigzag};
  for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
    s.copies = {};
    const auto plain = reads_of(with_copies(s, pass, causal));
    s.copies = {.gathered = true, .scattered = true};
    EXPECT_EQ(reads_of(with_copies(s, pass, causal)), plain);
  }
}

TEST(framework_copies, of_exchanged_heads) {
  strategy s{.schedule = "ulysses",
             .rows = 1,
             .cols = 1,
             .ulysses = 2,
             .tokens = token_layout::contiguous};
  const auto of = [&](framework_copies copies, std::int64_t batch = 1) {
    s.copies = copies;
    auto a = copied_layer;
    a.batch = batch;
    return reads_of(with_copies(s, pass_kind::forward, a));
  };
  const std::string attends = "attention q k v, ", received = "copy q k v, all_to_all q k v, ",
                    returned = "all_to_all o, copy o";
  EXPECT_EQ(of({}), received + attends + returned);
  EXPECT_EQ(of({.received = true}), received + "copy q k v, " + attends + returned);
  EXPECT_EQ(of({.returned = true}), received + attends + "copy o, " + returned);
  EXPECT_EQ(of({.batched = true}), received + attends + returned);
  EXPECT_EQ(of({.batched = true}, 2), received + "copy q k v, " + attends + returned);
  auto continued = copied_layer;
  continued.prefix = 64;
  s.copies = {.received = true};
  EXPECT_EQ(reads_of(with_copies(s, pass_kind::forward, continued)), received + attends + returned);
}

TEST(framework_copies, an_exchange_of_heads_may_be_a_call_for_each_tensor) {
  const strategy s{.schedule = "ulysses",
                   .rows = 1,
                   .cols = 1,
                   .ulysses = 2,
                   .tokens = token_layout::contiguous,
                   .copies = {.returned = true, .separate = true}};
  EXPECT_EQ(reads_of(with_copies(s, pass_kind::forward)),
            "copy q k v, all_to_all q, all_to_all k, all_to_all v, attention q k v, copy o, "
            "all_to_all o, copy o");
}

/// 4 MB at half of a memory's 1 TB/s, of which the cache would hold all, in a call of 2 us; casts as ever.
TEST(framework_copies, reach_a_share_of_the_memorys_rate) {
  const device_profile device{.memory_bandwidth = bandwidth(1e12),
                              .cache = byte_count(100 << 20),
                              .cache_bandwidth = bandwidth(8e12),
                              .kernel_launch = seconds(2e-6)};
  const attention a{
      .heads = 8, .kv_heads = 8, .head_dim = 125, .sequence = 2000, .mask = mask_kind::full};
  const auto times = [&](const strategy& s, double rate) {
    const auto program = with_copies(s, pass_kind::forward, a);
    const workload work(program, a, s.tokens, true);
    const local_costs costs(work, device, nullptr, run_start::in_sequence, rate);
    std::vector<double> us;
    for (std::size_t i = 0; i < program.program.size(); ++i) {
      if (program.program[i].kind == op_kind::copy) us.push_back(costs.time(i, 0).value() * 1e6);
    }
    return us;
  };
  const strategy heads{.schedule = "ulysses",
                       .rows = 1,
                       .cols = 1,
                       .ulysses = 2,
                       .tokens = token_layout::contiguous};
  const double of_one = 2 * 2 * 1e6;  // bytes read and written of a tensor of 1,000 tokens
  EXPECT_THAT(times(heads, 1),
              testing::ElementsAre(testing::DoubleNear(3 * (2 + of_one / 8e6), 1e-6),
                                   testing::DoubleNear(2 + of_one / 8e6, 1e-6)));
  EXPECT_THAT(times(heads, 0.5),
              testing::ElementsAre(testing::DoubleNear(3 * (2 + of_one / 0.5e6), 1e-6),
                                   testing::DoubleNear(2 + of_one / 0.5e6, 1e-6)));
  EXPECT_EQ(times(ring_of_two(joining::none), 0.5), times(ring_of_two(joining::none), 1));
}

/// Every schedule computes attention with all copies, which cost what they read and write.
TEST(framework_copies, leave_every_schedule_right) {
  for (const auto& algorithm : algorithms()) {
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      strategy s{.schedule = algorithm.name, .ulysses = 0};
      if (!has_pass(s, pass)) continue;
      SCOPED_TRACE(algorithm.name);
      auto a = copied_layer;
      if (algorithm.for_windows) {
        a.mask = mask_kind::causal;
        a.window = a.sequence / 2;
        s.tokens = algorithm.tokens;
      }
      s = complete(s, a, 4);
      const auto plain = make_schedule(s, a, pass);
      s.copies = {joining::every, true, true, true, true, true, true};
      const auto program = make_schedule(s, a, pass);
      check(program);
      EXPECT_EQ(workload(program, a, s.tokens, true).bytes_sent(0),
                workload(plain, a, s.tokens, true).bytes_sent(0));
    }
  }
}

TEST(framework_copies, take_memory_while_they_are_used) {
  const auto peak = [](framework_copies copies) {
    const strategy s{.schedule = "allgather",
                     .rows = 2,
                     .cols = 1,
                     .tokens = token_layout::contiguous,
                     .copies = copies};
    const auto program = with_copies(s, pass_kind::forward);
    return peak_memory(workload(program, copied_layer, s.tokens, true)).working;
  };
  const byte_count gathered(2 * 2 * copied_layer.heads * copied_layer.head_dim *
                            copied_layer.sequence);
  EXPECT_EQ(peak({}), gathered);
  EXPECT_EQ(peak({.gathered = true}), gathered * 2);
}

TEST(framework_copies, joinings_have_names) {
  for (const auto j : {joining::none, joining::first, joining::every})
    EXPECT_EQ(parse_joining(name_of(j)), j);
  EXPECT_ERROR(parse_joining("once"), std::invalid_argument, "expected one of: none, first, every");
}

}  // namespace
}  // namespace attnsim
