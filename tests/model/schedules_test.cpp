#include "model/schedule/algorithms/schedules.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "model/cost/workload.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/mesh_steps.hpp"
#include "model/schedule/schedule_check.hpp"
#include "tests/every_strategy.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace schedules_test {

attention problem(std::int64_t sequence, std::int64_t group_size,
                  mask_kind mask = mask_kind::full) {
  return {
      .heads = 8, .kv_heads = 8 / group_size, .head_dim = 16, .sequence = sequence, .mask = mask};
}

std::string label(const strategy& s, pass_kind pass) {
  return std::string(s.schedule) + " " + std::to_string(s.rows) + "x" + std::to_string(s.cols) +
         " U=" + std::to_string(s.ulysses) + " " + std::string(name_of(pass)) + " " +
         std::string(name_of(s.order)) + " " + std::string(name_of(s.tokens));
}

/// With numbers on the wire that take turns.
std::vector<strategy> strategies(int ranks, const attention& a) {
  auto all = every_strategy(ranks, a);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].tokens = token_layout::striped;
    all[i].partials = all[i].gradients = precision(i % 2);
  }
  return all;
}

TEST(schedules, compute_every_pair_once) {
  for (const int ranks : {1, 2, 3, 4, 6, 8, 9, 12, 16}) {
    for (const auto mask : {mask_kind::full, mask_kind::causal}) {
      const auto a = problem(ranks * 4, mask == mask_kind::full ? 1 : 4, mask);
      for (const auto& s : strategies(ranks, a)) {
        for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
          if (!has_pass(s, pass)) continue;
          EXPECT_NO_THROW(check(make_schedule(s, a, pass))) << label(s, pass);
        }
      }
    }
  }
}

std::string kinds(const schedule& s) {
  std::string all;
  for (const auto& op : s.program) all += std::string(name_of(op.kind)) + " ";
  return all;
}

/// What a program holds and does, but for the names.
std::string written(const schedule& s) {
  std::string all = kinds(s);
  for (const auto& b : s.buffers)
    all += fmt::format("{}{}{} ", name_of(b.what), name_of(b.format), static_cast<int>(b.heads));
  return all;
}

/// A problem that the algorithm computes.
attention problem_for(const std::string& schedule, int tokens) {
  auto a = problem(tokens, 1, mask_kind::causal);
  if (find_algorithm(schedule).for_windows) a.window = 3;
  return a;
}

strategy halo_on(int ranks) {
  return {.schedule = "halo", .rows = ranks, .cols = 1, .tokens = token_layout::contiguous};
}

/// All of one schedule.
std::vector<strategy> strategies_of(const std::string& schedule, int ranks, const attention& a) {
  if (find_algorithm(schedule).for_windows) return {halo_on(ranks)};
  auto all = every_strategy(ranks, a);
  std::erase_if(all, [&](const strategy& s) { return s.schedule != schedule; });
  return all;
}

/// Whether any program of the algorithm changes with a setting.
template <typename Change>
bool reads(const std::string& schedule, const Change& change) {
  for (const int ranks : {4, 8, 9, 16}) {
    const auto a = problem_for(schedule, ranks * 4);
    for (const auto& s : strategies_of(schedule, ranks, a)) {
      auto other = s;
      change(other);
      for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
        if (!has_pass(s, pass)) continue;
        if (written(make_schedule(s, a, pass)) != written(make_schedule(other, a, pass)))
          return true;
      }
    }
  }
  return false;
}

TEST(schedules, say_what_they_read_of_a_strategy) {
  for (const auto& one : algorithms()) {
    EXPECT_EQ(reads(one.name, [](auto& s) { s.partials = precision::fp32; }), one.sends_partials)
        << one.name;
    EXPECT_EQ(reads(one.name, [](auto& s) { s.gradients = precision::fp32; }), one.sends_gradients)
        << one.name;
  }
}

/// What a program's additions of partial outputs read and write on one rank.
std::int64_t merge_bytes(const schedule& program, const attention& a, token_layout tokens,
                         merge_kind merges) {
  const workload w(program, a, tokens, false, merges);
  std::int64_t bytes = 0;
  for (const auto& op : program.program) {
    if (op.kind == op_kind::merge) bytes += w.memory_calls_of(op).traffic.value();
    if (!is_kernel(op.kind)) continue;
    for (const auto& t : w.tiles(op, 1)) bytes += w.accumulation_of(op, t).traffic.value();
  }
  return bytes;
}

/// Whether the way of adding them ever makes a difference.
bool adds_outputs(const std::string& name) {
  for (const int ranks : {4, 9}) {
    const auto a = problem_for(name, ranks * 16);
    for (auto s : strategies_of(name, ranks, a)) {
      for (const auto tokens : {token_layout::zigzag, token_layout::striped}) {
        if (!find_algorithm(name).for_windows) s.tokens = tokens;
        const auto program = make_schedule(s, a, pass_kind::forward);
        if (merge_bytes(program, a, s.tokens, merge_kind::fused) !=
            merge_bytes(program, a, s.tokens, merge_kind::unfused))
          return true;
      }
    }
  }
  return false;
}

TEST(schedules, say_whether_they_add_up_partial_outputs) {
  for (const auto& one : algorithms()) EXPECT_EQ(adds_outputs(one.name), one.merges) << one.name;
}

TEST(schedules, that_decode_have_no_backward_pass) {
  const attention a{.heads = 8, .kv_heads = 2, .sequence = 1, .prefix = 100};
  const strategy s{.schedule = "helix", .rows = 4, .cols = 1};
  EXPECT_ERROR(make_schedule(s, a, pass_kind::backward), input_error,
               "pass: 'backward': expected forward: helix decodes");
}

TEST(schedules, that_decode_share_out_the_query_heads) {
  const attention a{.heads = 8, .kv_heads = 2, .sequence = 1, .prefix = 100};
  EXPECT_EQ(refusal({.schedule = "dcp", .rows = 4, .cols = 1, .tensor_parallel = 2}, a), "");
  EXPECT_EQ(refusal({.schedule = "dcp", .rows = 8, .cols = 1, .tensor_parallel = 2}, a),
            "4 query heads of a group are not a multiple of its 8 ranks");
  EXPECT_ERROR(complete({.schedule = "helix"}, a, 16), infeasible,
               "schedule: 'helix': no grid of 16 ranks will do; 8 query heads of a group are not a "
               "multiple of its 16 ranks");
}

std::string decoding(const strategy& s) {
  return kinds(make_schedule(s, {.heads = 8, .kv_heads = 2, .sequence = 1}, pass_kind::forward));
}

TEST(schedules, that_decode_exchange_as_their_servers_do) {
  strategy s{.schedule = "helix", .rows = 4, .cols = 1};
  EXPECT_EQ(decoding(s), "attention copy all_to_all merge ");
  s.schedule = "dcp-a2a";
  EXPECT_EQ(decoding(s), "all_gather copy attention copy all_to_all merge ");
  s.schedule = "dcp";
  EXPECT_EQ(decoding(s), "all_gather copy attention all_gather weigh copy reduce_scatter ");
}

// What a wrong one would be told.
TEST(schedules, are_checked_for_weights) {
  const attention a{.heads = 8, .kv_heads = 2, .sequence = 1};
  auto unweighed = make_schedule({.schedule = "dcp", .rows = 4, .cols = 1}, a, pass_kind::forward);
  std::erase_if(unweighed.program, [](const operation& op) { return op.kind == op_kind::weigh; });
  EXPECT_THAT([&] { check(unweighed); },
              testing::ThrowsMessage<std::logic_error>(
                  "dcp: operation 5 (reduce_scatter), rank 0: sums outputs that are not weighed"));
}

TEST(schedules, have_sinks_once_in_every_output) {
  for (const int ranks : {1, 2, 4, 6, 9}) {
    const auto without = problem(ranks * 4, 2, mask_kind::causal);
    auto a = without;
    a.sinks = true;
    for (const auto& s : strategies(ranks, a)) {
      const auto program = make_schedule(s, a, pass_kind::forward);
      EXPECT_NO_THROW(check(program)) << label(s, pass_kind::forward);
      EXPECT_EQ(std::count_if(program.program.begin(), program.program.end(),
                              [](const operation& op) { return op.kind == op_kind::sink; }),
                1)
          << label(s, pass_kind::forward);
      if (!has_pass(s, pass_kind::backward)) continue;
      EXPECT_EQ(kinds(make_schedule(s, a, pass_kind::backward)),
                kinds(make_schedule(s, without, pass_kind::backward)));
    }
  }
}

// What a wrong one would be told.
TEST(schedules, are_checked_for_sinks) {
  auto a = problem(32, 4, mask_kind::causal);
  a.sinks = true;
  auto twice = make_schedule({.schedule = "ring", .rows = 4, .cols = 1}, a, pass_kind::forward);
  twice.program.push_back(twice.program.back());
  EXPECT_THAT([&] { check(twice); }, testing::ThrowsMessage<std::logic_error>(testing::HasSubstr(
                                         "(end), rank 0: has 2 of 1 parts of the sinks in ")));
}

TEST(schedules, of_values_in_keys_have_none_of_their_own) {
  for (const int ranks : {1, 4, 6}) {
    auto a = problem(ranks * 4, 8);
    a.latent = true;
    for (const auto& s : strategies(ranks, a)) {
      const auto program = make_schedule(s, a, pass_kind::forward);
      EXPECT_NO_THROW(check(program)) << label(s, pass_kind::forward);
      for (const auto& b : program.buffers) EXPECT_NE(b.what, tensor::v) << s.schedule;
    }
  }
}

TEST(schedules, of_a_window_see_all_that_it_reaches) {
  for (const int ranks : {1, 2, 3, 4, 6, 8, 16}) {
    for (const std::int64_t window : {1, 2, 4, 5, 6, 9, 12, 4 * ranks - 1}) {
      auto a = problem(ranks * 4, 4, mask_kind::causal);
      a.window = window;
      for (const auto pass : {pass_kind::forward, pass_kind::backward})
        EXPECT_NO_THROW(check(make_schedule(halo_on(ranks), a, pass))) << ranks << " " << window;
    }
  }
}

// Windows of 1, of 2 to 8 and of 9 tokens, chunks of 8.
TEST(schedules, of_a_window_send_what_it_reaches) {
  auto a = problem(32, 4, mask_kind::causal);
  a.window = 1;
  EXPECT_EQ(kinds(make_schedule(halo_on(4), a, pass_kind::forward)), "attention ");
  EXPECT_EQ(kinds(make_schedule(halo_on(4), a, pass_kind::backward)),
            "delta attention_backward copy copy ");
  a.window = 8;
  EXPECT_EQ(kinds(make_schedule(halo_on(4), a, pass_kind::forward)),
            "copy shift attention attention ");
  EXPECT_EQ(kinds(make_schedule(halo_on(4), a, pass_kind::backward)),
            "delta attention_backward attention_backward shift copy accumulate ");
  a.window = 9;
  EXPECT_EQ(kinds(make_schedule(halo_on(4), a, pass_kind::forward)), "shift attention attention ");
}

TEST(schedules, of_a_window_say_what_they_do_not_compute) {
  auto a = problem(32, 4, mask_kind::causal);
  EXPECT_EQ(refusal(halo_on(4), a), "computes sliding windows only");
  EXPECT_ERROR(complete({.schedule = "halo"}, a, 4), infeasible,
               "schedule: 'halo': no grid of 4 ranks will do; computes sliding windows only");
  a.window = 4;
  EXPECT_EQ(refusal(halo_on(4), a), "");
  EXPECT_EQ(refusal({.schedule = "halo", .rows = 4, .cols = 1}, a),
            "has consecutive tokens on each rank only");
  auto two_columns = halo_on(2);
  two_columns.cols = 2;
  EXPECT_EQ(refusal(two_columns, a), "runs on one column of ranks");
  a.prefix = 32;
  EXPECT_EQ(refusal(halo_on(4), a), "has no cached prefix");
}

// What a wrong one would be told: without the second kernel call, and with the nearest chunk's last tokens only.
TEST(schedules, of_a_window_are_checked_for_what_it_reaches) {
  auto a = problem(32, 4, mask_kind::causal);
  a.window = 12;
  auto cut = make_schedule(halo_on(4), a, pass_kind::forward);
  cut.program.pop_back();
  EXPECT_THAT([&] { check(cut); }, testing::ThrowsMessage<std::logic_error>(
                                       "halo: operation 5 (end), rank 2: holds an incomplete o"));
  auto nearer = make_schedule(halo_on(4), a, pass_kind::forward);
  nearer.window_reach = 3;
  EXPECT_THAT([&] { check(nearer); },
              testing::ThrowsMessage<std::logic_error>(
                  "halo: operation 5 (attention), rank 0: attends to the last tokens of chunk 2 "
                  "only"));
}

bool writes_results(const schedule& s, const operation& op) {
  return std::all_of(op.writes.begin(), op.writes.end(), [&](const operand& o) {
    const auto& b = s.buffer_of(o);
    return b.resident && b.format == precision::storage;
  });
}

// Nothing is added up or converted: the kernel writes the results.
TEST(schedules, of_one_place_are_a_plain_kernel_call) {
  const auto a = problem(64, 1);
  for (auto s : strategies(1, a)) {
    s.partials = s.gradients = precision::fp32;
    const auto forward = make_schedule(s, a, pass_kind::forward);
    EXPECT_EQ(kinds(forward), "attention ") << s.schedule;
    EXPECT_TRUE(writes_results(forward, forward.program[0])) << s.schedule;
    if (!has_pass(s, pass_kind::backward)) continue;
    const auto backward = make_schedule(s, a, pass_kind::backward);
    EXPECT_EQ(kinds(backward), "delta attention_backward ") << s.schedule;
    EXPECT_TRUE(writes_results(backward, backward.program[1])) << s.schedule;
  }
}

// Where each rank has one kernel call alone, what no other rank adds to goes where it belongs.
TEST(schedules, write_the_rows_of_an_only_step_once) {
  const auto a = problem(64, 1);
  for (const strategy& s : {strategy{.schedule = "allgather", .rows = 4, .cols = 1},
                            strategy{.schedule = "attention2d", .rows = 4, .cols = 1},
                            strategy{.schedule = "hierarchical-allgather", .rows = 2, .cols = 2}}) {
    const auto program = make_schedule(s, a, pass_kind::backward);
    const auto kernel = std::find_if(program.program.begin(), program.program.end(),
                                     [](const operation& op) { return is_kernel(op.kind); });
    EXPECT_TRUE(program.buffer_of(find(kernel->writes, tensor::d_q)).resident) << s.schedule;
  }
}

}  // namespace schedules_test
}  // namespace attnsim
