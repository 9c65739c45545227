#include "validate/executor.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <tuple>

#include "tests/every_strategy.hpp"
#include "tests/validate/small_runs.hpp"

namespace attnsim::validate {
namespace executor_test {

/// Oracles by problem: many runs share one.
const oracle& oracle_of(const attention& a) {
  using key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, mask_kind, data_type, std::optional<data_type>, bool, bool,
                         std::vector<std::int64_t>, std::vector<std::int64_t>, std::int64_t>;
  static std::map<key, oracle> known;
  const key problem{a.batch,      a.heads,     a.kv_heads, a.head_dim,   a.v_head_dim,
                    a.sequence,   a.padding,   a.window,   a.prefix,     a.kv_sequence,
                    a.kept_first, a.mask,      a.dtype,    a.wire_dtype, a.sinks,
                    a.latent,     a.documents, a.prefixes, a.latent_rank};
  return known.try_emplace(problem, a).first->second;
}

void expect_correct(const strategy& s, const attention& a, pass_kind pass) {
  SCOPED_TRACE(label(s, a, pass));
  try {
    const auto run = run_small(make_schedule(s, a, pass), a, s.tokens, oracle_of(a));
    EXPECT_TRUE(run.numbers.passed)
        << run.numbers.relative_error << " relative, " << run.numbers.max_error << " at most";
    EXPECT_EQ(run.reported_peak.value(), run.counted_peak.value());
    EXPECT_EQ(run.allocated_peak, static_cast<std::size_t>(run.counted_peak.value()));
    EXPECT_EQ(run.left, 0u);
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
}

constexpr token_layout layouts[] = {token_layout::contiguous, token_layout::zigzag,
                                    token_layout::zigzag_stream, token_layout::striped};
constexpr pass_kind passes[] = {pass_kind::forward, pass_kind::backward};

class executor_test : public testing::TestWithParam<int> {};

/// A problem for `ranks` ranks; head groups, types and wire formats take turns. A chain of more than
/// 32 roundings to bf16 is beyond its tolerance.
attention problem_of_turn(int turn, int ranks, mask_kind mask) {
  return {.batch = 1 + turn % 5 / 4,
          .heads = 4,
          .kv_heads = 4 >> turn % 3,
          .head_dim = 8,
          .v_head_dim = turn % 11 < 5 ? 0 : 24,
          .sequence = std::max(2, 32 / ranks) * 2 * ranks,
          .mask = mask,
          .sinks = turn % 13 < 5,
          .dtype = data_type(turn % 7 % 3)};
}

strategy of_turn(int turn, strategy s, token_layout layout) {
  const bool rounds_often = std::max(s.rows, s.cols) > 32;
  s.tokens = layout;
  s.partials = rounds_often || turn % 2 == 0 ? precision::fp32 : precision::storage;
  s.gradients = rounds_often || turn / 2 % 2 == 0 ? precision::fp32 : precision::storage;
  return s;
}

void append(std::vector<strategy>& to, const std::vector<strategy>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// All strategies and passes, with and without tensor parallelism, with all layouts and masks or, on
/// many ranks, with one after another.
TEST_P(executor_test, computes_attention) {
  const int ranks = GetParam(), stride = ranks > 16 ? 211 : ranks > 9 ? 13 : ranks > 3 ? 7 : 1;
  int turn = 0;
  auto all = every_strategy(ranks, {.heads = 4, .kv_heads = 4});
  if (ranks <= 9) append(all, every_strategy(ranks, {.heads = 4, .kv_heads = 4}, 2));
  for (const auto& s : all) {
    for (const auto mask : {mask_kind::full, mask_kind::causal}) {
      for (const auto layout : layouts) {
        for (const auto pass : passes) {
          if (++turn % stride != 0) continue;
          const auto a = problem_of_turn(turn, ranks, mask);
          if (refusal(s, a).empty() && has_pass(s, pass))
            expect_correct(of_turn(turn, s, layout), a, pass);
        }
      }
    }
  }
}

/// Keys that are more than queries: a prefix of 1, 7 or 64 times the new tokens, or another sequence; heads of their own, in
/// groups and one for all; padding and windows take turns.
TEST_P(executor_test, computes_attention_to_a_prefix_or_another_sequence) {
  const int ranks = GetParam(), stride = ranks > 16 ? 1511 : ranks > 9 ? 31 : ranks > 3 ? 11 : 3;
  int turn = 0;
  auto all = every_strategy(ranks, {.heads = 4, .kv_heads = 4});
  if (ranks <= 9) append(all, every_strategy(ranks, {.heads = 4, .kv_heads = 4}, 2));
  for (const auto& s : all) {
    for (const int times : {0, 1, 7, 64}) {
      for (const auto layout : layouts) {
        for (const auto pass : passes) {
          if (++turn % stride != 0 || (times > 0 && pass == pass_kind::backward)) continue;
          const auto mask = times > 0 && turn % 3 != 0 ? mask_kind::causal : mask_kind::full;
          auto a = problem_of_turn(turn, ranks, mask);
          a.sequence = 4 * ranks;
          a.padding = turn % 4;
          (times > 0 ? a.prefix : a.kv_sequence) = (times > 0 ? times : 1 + turn % 5) * 4 * ranks;
          if (mask == mask_kind::causal && turn % 5 == 0) {
            a.window = 3 * ranks + turn % 7;
            a.kept_first = turn % 2 * (1 + turn % 6);
          }
          if (refusal(s, a).empty() && has_pass(s, pass))
            expect_correct(of_turn(turn, s, layout), a, pass);
        }
      }
    }
  }
}

/// A sequence as documents of random lengths.
template <typename Below>
std::vector<std::int64_t> cut(std::int64_t tokens, int documents, Below below) {
  std::vector<std::int64_t> lengths;
  for (int i = 1; i < documents && tokens > 1; ++i) {
    lengths.push_back(1 + below(static_cast<int>(tokens - 1)));
    tokens -= lengths.back();
  }
  lengths.push_back(tokens);
  return lengths;
}

/// Random shapes, most with padding, some in several documents, some after a prefix or of another sequence's keys, on random
/// strategies.
TEST(executor, computes_attention_of_random_shapes) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int i = 0; i < 150; ++i) {
    const int ranks = 1 + below(9), kv_heads = 1 + below(3);
    const std::int64_t tokens = 1 + below(40 * ranks);
    attention a{.batch = 1 + below(2),
                .heads = kv_heads * (1 + below(4)),
                .kv_heads = kv_heads,
                .head_dim = 8 * (1 + below(4)),
                .v_head_dim = below(2) * 8 * (1 + below(4)),
                .sequence = tokens,
                .mask = mask_kind(below(2)),
                .sinks = below(3) == 0,
                .dtype = data_type::fp32};
    if (a.mask == mask_kind::causal && below(3) == 0)
      a.window = 1 + below(static_cast<int>(tokens)), a.kept_first = below(2) * below(9);
    if (below(3) == 0) a.documents = cut(tokens, 1 + below(7), below);
    const auto possible = every_strategy(ranks, a, ranks % 2 == 0 && below(3) == 0 ? 2 : 1);
    if (possible.empty()) continue;
    auto s = possible[static_cast<std::size_t>(below(static_cast<int>(possible.size())))];
    s.tokens = layouts[below(4)];
    if (s.tokens == token_layout::zigzag && !a.documents.empty()) {
      a.sequence = 0;
      for (auto& length : a.documents) {
        length = padded_sequence(length, s.tokens, ranks);
        a.sequence += length;
      }
      a.padding = below(2) * padded_sequence(1, s.tokens, ranks);
      a.sequence += a.padding;
    } else {
      a.sequence = padded_sequence(tokens, s.tokens, ranks);
      a.padding = a.sequence - tokens;
    }
    const auto pass = has_pass(s, pass_kind::backward) ? passes[below(2)] : pass_kind::forward;
    if (a.documents.empty() && below(2) == 0) {
      const auto keys = padded_sequence(1 + below(80 * ranks), s.tokens, ranks);
      if (a.mask == mask_kind::full && below(2) == 0) {
        a.kv_sequence = keys;
      } else if (pass == pass_kind::forward) {
        a.prefix = keys;
      }
    }
    expect_correct(s, a, pass);
  }
}

/// One to nine new tokens after a cache of any length, sharded over the ranks.
TEST(executor, decodes_over_a_sharded_cache) {
  std::mt19937 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (const int ranks : {1, 2, 3, 4, 6, 8, 16}) {
    for (int i = 0; i < 60; ++i) {
      const int tensor_parallel = ranks % 2 == 0 ? 1 + below(2) : 1;
      const int shards = ranks / tensor_parallel;
      const std::int64_t kv_heads = tensor_parallel * (1 + below(2));
      attention a{.batch = 1 + below(3),
                  .heads = kv_heads * shards * (1 + below(2)),
                  .kv_heads = kv_heads,
                  .head_dim = 8 * (1 + below(3)),
                  .v_head_dim = below(2) * 8 * (1 + below(3)),
                  .sequence = 1 + below(i % 2 == 0 ? 1 : 9),
                  .mask = mask_kind(below(2)),
                  .sinks = below(3) == 0,
                  .dtype = data_type(below(3))};
      a.prefix = a.sequence * below(65);
      if (a.batch > 1 && below(2) == 0) {
        for (std::int64_t request = 0; request < a.batch; ++request)
          a.prefixes.push_back(request == 1 ? a.prefix : below(static_cast<int>(a.prefix) + 1));
      }
      if (a.mask == mask_kind::causal && below(4) == 0)
        a.window = 1 + below(40), a.kept_first = below(2) * below(6);
      if (a.mask == mask_kind::full && a.prefixes.empty() && below(3) == 0)
        a.kv_sequence = 1 + std::exchange(a.prefix, 0);
      strategy s{.schedule = i % 3 == 0   ? "helix"
                             : i % 3 == 1 ? "dcp"
                                          : "dcp-a2a",
                 .rows = shards,
                 .cols = 1,
                 .tensor_parallel = tensor_parallel,
                 .tokens = layouts[i % 4]};
      s.partials = precision(below(2));
      ASSERT_EQ(refusal(s, a), "");
      expect_correct(s, a, pass_kind::forward);
    }
  }
}

/// Counts how often kernels are called.
class counting_backend final : public forwarding_backend {
 public:
  counting_backend(kernels::backend& inner, std::atomic<int>& alone, std::atomic<int>& together)
      : forwarding_backend(inner), alone_(alone), together_(together) {}

  void forward(stream_id s, const kernels::forward_arguments& a) override {
    ++alone_;
    forwarding_backend::forward(s, a);
  }
  void forward_each(stream_id s, std::span<const kernels::forward_arguments> blocks) override {
    ++together_;
    forwarding_backend::forward_each(s, blocks);
  }

 private:
  std::atomic<int>&alone_, &together_;
};

// Three requests on four ranks: a call a rank, with the tokens that the window leaves behind one more.
TEST(executor, attends_to_requests_of_several_lengths_by_one_call) {
  attention a{.batch = 3, .heads = 8, .kv_heads = 2, .head_dim = 16, .sequence = 2, .prefix = 90};
  a.prefixes = {7, 90, 40};
  const strategy s{.schedule = "helix", .rows = 4, .cols = 1, .tokens = token_layout::striped};
  for (const int kept : {0, 3}) {
    a.window = kept > 0 ? 30 : 0;
    a.kept_first = kept;
    std::atomic<int> alone = 0, together = 0;
    const disturbance counted{.of_transport = nullptr, .of_backend = [&](auto& inner, int) {
                                return std::make_unique<counting_backend>(inner, alone, together);
                              }};
    const auto run =
        run_small(make_schedule(s, a, pass_kind::forward), a, s.tokens, oracle_of(a), counted);
    EXPECT_TRUE(run.numbers.passed);
    EXPECT_EQ(alone, 0);
    EXPECT_EQ(together, kept > 0 ? 7 : 4);
  }
}

/// One K/V head whose first elements are the values, gathered, passed round and sharded.
TEST(executor, attends_to_values_in_keys) {
  int turn = 0;
  for (const int ranks : {1, 2, 3, 4, 6, 8}) {
    attention a{.heads = 2 * ranks,
                .kv_heads = 1,
                .head_dim = 24,
                .v_head_dim = 16,
                .sequence = 4 * ranks,
                .latent = true};
    for (auto s : every_strategy(ranks, a)) {
      if (++turn % (ranks > 4 ? 3 : 1) != 0) continue;
      a.prefix = turn % 2 * 8 * ranks;
      a.mask = mask_kind(turn % 2);
      a.dtype = data_type(turn % 3);
      expect_correct(of_turn(turn, s, layouts[turn % 4]), a, pass_kind::forward);
    }
  }
  EXPECT_GT(turn, 60);
}

/// Keys and values that are made of latents where these arrive, in every schedule that sends keys, also in groups that exchange
/// heads, in fp8 between ranks, and after a cached prefix, of which there are nothing but latents.
TEST(executor, expands_latents_where_they_arrive) {
  int turn = 0, runs = 0, exchanging = 0, cached = 0;
  for (const int ranks : {2, 3, 4, 6, 8, 16}) {
    const attention layer{.heads = 4,
                          .kv_heads = 4,
                          .head_dim = 20,
                          .v_head_dim = 12,
                          .sequence = 4 * ranks,
                          .latent_rank = 10,
                          .rotary = 6};
    auto all = every_strategy(ranks, layer);
    append(all, every_strategy(ranks, layer, 2));
    for (auto s : all) {
      if (++turn % (ranks > 6 ? 7 : ranks > 4 ? 5 : 1) != 0) continue;
      auto a = layer;
      s.keys_sent = key_form(turn % 4 != 0);
      a.batch = 1 + turn % 2;
      a.mask = mask_kind(turn % 2);
      a.window = a.mask == mask_kind::causal && turn % 5 == 0 ? 3 * ranks : 0;
      a.dtype = data_type(turn % 3);
      if (turn % 7 == 3) a.wire_dtype = data_type::fp8;
      if (turn % 11 == 5) a.dtype = data_type::fp8;
      a.prefix = turn / 2 % 2 * (turn % 9 + 1) * 4 * ranks;
      a.padding = turn % 3;
      s = of_turn(
          turn, s,
          find_algorithm(s.schedule).for_windows ? token_layout::contiguous : layouts[turn % 4]);
      if (!refusal(s, a).empty()) continue;
      ++runs;
      exchanging += s.ulysses > 1 && s.keys_sent == key_form::latent ? 1 : 0;
      cached += a.prefix > 0 ? 1 : 0;
      expect_correct(s, a, pass_kind::forward);
    }
  }
  EXPECT_GT(runs, 150);
  EXPECT_GT(exchanging, 20);
  EXPECT_GT(cached, 50);
}

/// Kernels, the wire or both in fp8, in every schedule; keys that are more than queries, windows and padding take turns.
TEST(executor, computes_in_fp8_and_with_fp8_on_the_wire) {
  using types = std::pair<data_type, std::optional<data_type>>;
  const types all[] = {{data_type::fp8, {}},
                       {data_type::fp8, data_type::bf16},
                       {data_type::bf16, data_type::fp8},
                       {data_type::fp16, data_type::fp8}};
  int turn = 0, runs = 0;
  for (const int ranks : {1, 2, 3, 4, 6, 8, 16}) {
    for (const auto& s : every_strategy(ranks, {.heads = 4, .kv_heads = 4})) {
      for (const auto pass : passes) {
        if (++turn % (ranks > 6 ? 29 : ranks > 3 ? 11 : 3) != 0 || !has_pass(s, pass)) continue;
        auto a = problem_of_turn(turn, ranks, mask_kind(turn / 2 % 2));
        a.head_dim = 16;
        std::tie(a.dtype, a.wire_dtype) = all[turn % 4];
        if (pass == pass_kind::forward) a.prefix = turn % 3 * 4 * ranks;
        if (a.mask == mask_kind::causal && turn % 5 == 0) a.window = 3 * ranks + turn % 7;
        a.padding = turn % 4;
        const auto layout =
            find_algorithm(s.schedule).for_windows ? token_layout::contiguous : layouts[turn % 4];
        const auto chosen = of_turn(turn, s, layout);
        if (!refusal(chosen, a).empty()) continue;
        ++runs;
        expect_correct(chosen, a, pass);
      }
    }
  }
  EXPECT_GT(runs, 60);
}

/// 14 heads on 4 ranks and 56 on 16, each with heads of its own and in groups, in every way to share them.
TEST(executor, shares_heads_that_do_not_divide) {
  int turn = 0;
  for (const auto& [ranks, heads, kv_heads] :
       {std::tuple(4, 14, 14), std::tuple(4, 14, 2), std::tuple(3, 7, 7), std::tuple(16, 56, 56),
        std::tuple(16, 56, 8)}) {
    attention a{.heads = heads, .kv_heads = kv_heads, .head_dim = 8, .sequence = 4 * ranks};
    for (const auto& s : every_strategy(ranks, a)) {
      const bool exchanges = s.ulysses > 1;
      if (!exchanges || ++turn % (ranks > 4 ? 7 : 1) != 0) continue;
      a.mask = mask_kind(turn % 2);
      a.dtype = data_type(turn % 3);
      a.sinks = turn % 4 == 0;
      for (const auto pass : passes) expect_correct(of_turn(turn, s, layouts[turn % 4]), a, pass);
    }
  }
  EXPECT_GT(turn, 40);
}

/// Windows from one token to the sequence, in documents or after padding.
TEST(executor, computes_windows_by_their_halo) {
  std::mt19937 random(13);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (const int ranks : {1, 2, 3, 4, 6, 8, 16}) {
    for (int i = 0; i < 40; ++i) {
      const int tensor_parallel = ranks % 2 == 0 ? 1 + below(2) : 1;
      const int chunks = ranks / tensor_parallel, tokens = chunks * (1 + below(12));
      const std::int64_t kv_heads = tensor_parallel * (1 + below(2));
      attention a{.batch = 1 + below(2),
                  .heads = kv_heads * (1 + below(3)),
                  .kv_heads = kv_heads,
                  .head_dim = 8 * (1 + below(3)),
                  .v_head_dim = below(2) * 8 * (1 + below(3)),
                  .sequence = tokens,
                  .padding = below(std::min(tokens, 4)),
                  .window = 1 + below(i % 2 == 0 ? std::min(tokens, 5) : tokens),
                  .sinks = below(3) == 0,
                  .dtype = data_type(below(3))};
      if (below(3) == 0) {
        a.documents = cut(a.sequence - a.padding, 1 + below(4), below);
      } else {
        a.kept_first = below(2) * below(tokens / chunks + 1);
      }
      strategy s{.schedule = "halo",
                 .rows = chunks,
                 .cols = 1,
                 .tensor_parallel = tensor_parallel,
                 .tokens = token_layout::contiguous};
      s.gradients = precision(below(2));
      ASSERT_EQ(refusal(s, a), "");
      for (const auto pass : passes) expect_correct(s, a, pass);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ranks, executor_test, testing::Values(1, 2, 3, 4, 6, 8, 9, 16, 64),
                         testing::PrintToStringParamName());

}  // namespace executor_test
}  // namespace attnsim::validate
