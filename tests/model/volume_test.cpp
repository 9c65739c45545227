#include "model/cost/volume.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "model/cost/memory.hpp"
#include "model/cost/workload.hpp"
#include "tests/every_strategy.hpp"

namespace attnsim {
namespace volume_test {

/// Tensor-parallel too, and numbers on the wire that take turns.
std::vector<strategy> strategies(int ranks, const attention& a) {
  auto all = every_strategy(ranks, a);
  const auto more = every_strategy(ranks, a, 2);
  all.insert(all.end(), more.begin(), more.end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].partials = precision(i % 2);
    all[i].gradients = precision(i / 2 % 2);
  }
  return all;
}

/// Bytes along axes, all and those that surely go round one of them.
struct sent {
  std::int64_t all = 0, round = 0;
};
using sent_along = std::map<axis_set, sent>;

sent_along told(const volume& v) {
  sent_along result;
  for (const auto& part : v.parts) {
    if (part.bytes == 0) continue;
    result[part.axes].all += part.bytes;
    if (part.round) result[part.axes].round += part.bytes;
  }
  return result;
}

sent_along written(const workload& w, int rank) {
  sent_along result;
  for (const auto& op : w.program().program) {
    const auto bytes = w.bytes_sent(op, rank).value();
    if (bytes == 0) continue;
    result[op.axes].all += bytes;
    const bool next = op.kind != op_kind::shift || std::abs(op.distance) == 1;
    if (next && (op.axes & (op.axes - 1)) == 0) result[op.axes].round += bytes;
  }
  return result;
}

/// The formula may say of less that it goes round.
bool agree(const sent_along& formula, const sent_along& program) {
  return std::equal(formula.begin(), formula.end(), program.begin(), program.end(),
                    [](const auto& f, const auto& p) {
                      return f.first == p.first && f.second.all == p.second.all &&
                             f.second.round <= p.second.round;
                    });
}

std::string text(const sent_along& list) {
  std::string all;
  for (const auto& [axes, bytes] : list) {
    all += " axes " + std::to_string(axes) + ": " + std::to_string(bytes.all) + ", round " +
           std::to_string(bytes.round);
  }
  return all;
}

int kernels(const schedule& s) {
  return static_cast<int>(std::count_if(s.program.begin(), s.program.end(),
                                        [](const operation& op) { return is_kernel(op.kind); }));
}

bool on_diagonal(const rank_grid& grid, int rank) {
  return grid.coordinate(rank, 0) == grid.coordinate(rank, 1);
}

std::string label(const strategy& s, const attention& a, pass_kind pass, int rank) {
  return s.schedule + " " + std::to_string(s.rows) + "x" + std::to_string(s.cols) + " U" +
         std::to_string(s.ulysses) + " T" + std::to_string(s.tensor_parallel) + " " +
         std::string(name_of(pass)) + " " + std::string(name_of(s.order)) + " " +
         std::string(name_of(s.reduction)) + " " + std::string(name_of(s.partials)) + " " +
         std::string(name_of(s.gradients)) + " kv " + std::to_string(a.kv_heads) + " rank " +
         std::to_string(rank);
}

void expect_what_is_sent(const strategy& s, const attention& a, pass_kind pass) {
  const auto program = make_schedule(s, a, pass);
  const workload w(program, a, s.tokens, true);
  const auto formula = volume_of(s, a, pass);
  auto off_diagonal = told(formula), diagonal = off_diagonal;
  diagonal.erase(0);
  for (int rank = 0; rank < w.ranks(); ++rank) {
    const auto& expected = on_diagonal(program.grid, rank) ? diagonal : off_diagonal;
    EXPECT_TRUE(agree(expected, written(w, rank)))
        << label(s, a, pass, rank) << " told" << text(expected) << " sent"
        << text(written(w, rank));
  }
  EXPECT_EQ(formula.apart, kernels(program) == 1) << label(s, a, pass, 0);
}

class volume_test : public testing::TestWithParam<int> {};

TEST_P(volume_test, is_what_the_program_sends) {
  const int ranks = GetParam();
  for (const std::int64_t kv_heads :
       {12, 4, 1}) {  // each query head its own, groups of 3, one for all
    for (const auto& [dtype, wire] :
         {std::pair(data_type::bf16, data_type::bf16), std::pair(data_type::fp32, data_type::fp32),
          std::pair(data_type::bf16, data_type::fp8), std::pair(data_type::fp8, data_type::fp8),
          std::pair(data_type::fp8, data_type::bf16)}) {
      const attention a{.batch = 2,
                        .heads = 12,
                        .kv_heads = kv_heads,
                        .head_dim = 16,
                        .sequence = 6 * ranks,
                        .dtype = dtype,
                        .wire_dtype = wire == dtype ? std::nullopt : std::optional(wire)};
      auto after_prefix = a, of_another = a;
      after_prefix.prefix = 18 * ranks;
      of_another.kv_sequence = 24 * ranks;
      of_another.mask = mask_kind::full;
      for (const auto& s : strategies(ranks, a)) {
        for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
          const bool computes = dtype != data_type::fp8 || pass == pass_kind::forward;
          if (!has_pass(s, pass) || !computes) continue;
          expect_what_is_sent(s, a, pass);
          expect_what_is_sent(s, of_another, pass);
        }
        expect_what_is_sent(s, after_prefix, pass_kind::forward);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ranks, volume_test, testing::Range(1, 17),
                         testing::PrintToStringParamName());

std::int64_t sent_in_all(const strategy& s, const attention& a) {
  std::int64_t bytes = 0;
  for (const auto& part : volume_of(s, a, pass_kind::forward).parts) bytes += part.bytes;
  return bytes;
}

// 8 ranks, S tokens in all, T of them new, 32 heads and 4 K/V heads of 128 in 2 bytes. Passing keys sends 7/8 of K and V of
// all tokens, S x 2 x 4 x 256 bytes; passing queries 7/8 of Q and O of the new ones and their log-sum-exps in 4 bytes,
// T x 32 x (512 + 4). As many at T = S x 2048/16512.
TEST(volume, passing_queries_sends_as_many_bytes_as_passing_keys_at_the_derived_share) {
  const std::int64_t all = 16512 * 8, even = 2048 * 8;
  const auto at = [&](std::int64_t new_tokens) {
    return attention{
        .heads = 32, .kv_heads = 4, .sequence = new_tokens, .prefix = all - new_tokens};
  };
  const strategy keys{.schedule = "ring", .rows = 8, .cols = 1};
  const strategy queries{.schedule = "passq-ring", .rows = 8, .cols = 1};
  const strategy gathered{.schedule = "passq-allgather", .rows = 1, .cols = 8};
  EXPECT_EQ(sent_in_all(keys, at(even)), all / 8 * 7 * 2048);
  EXPECT_EQ(sent_in_all(queries, at(even)), sent_in_all(keys, at(even)));
  EXPECT_EQ(sent_in_all(gathered, at(even)), sent_in_all(keys, at(even)));
  EXPECT_EQ(sent_in_all(keys, at(even / 2)), sent_in_all(keys, at(even)));
  EXPECT_EQ(sent_in_all(queries, at(even / 2)), sent_in_all(queries, at(even)) / 2);
}

// 4 new tokens of 2 requests, 16 query heads and 4 K/V heads of 64 in 2 bytes, on R x T ranks. A rank's group has 16/T heads:
// 8 tokens x 16/T heads x 128 bytes of queries, as many of partial outputs (or twice, in fp32), x 4 of statistics.
TEST(volume, of_decoding_does_not_depend_on_the_cache) {
  for (const int shards : {1, 2, 4, 8}) {
    for (const int tensor_parallel : {1, 2}) {
      for (const auto partials : {precision::storage, precision::fp32}) {
        for (const std::int64_t cached : {0, 1, 7, 1000, 1 << 20}) {
          const attention a{.batch = 2,
                            .heads = 16,
                            .kv_heads = 4,
                            .head_dim = 64,
                            .sequence = 4,
                            .prefix = cached};
          strategy s{.rows = shards, .cols = 1, .tensor_parallel = tensor_parallel};
          s.partials = partials;
          const auto heads = 8 * 16 / tensor_parallel;
          const auto q = heads * 128, o = partials == precision::fp32 ? 2 * q : q, lse = heads * 4;
          const auto others = [&](std::int64_t bytes) { return bytes / shards * (shards - 1); };
          const auto sent = [&](const char* schedule) {
            s.schedule = schedule;
            const auto program = make_schedule(s, a, pass_kind::forward);
            const workload w(program, a, token_layout::striped, false);
            const auto formula = sent_in_all(s, a);
            for (int rank = 0; rank < w.ranks(); ++rank)
              EXPECT_EQ(w.bytes_sent(rank).value(), formula) << schedule << " " << shards;
            return formula;
          };
          EXPECT_EQ(sent("helix"), others(o + lse));
          auto unequal = a;
          unequal.prefixes = {cached / 3, cached};
          EXPECT_EQ(sent_in_all(s, unequal), sent_in_all(s, a));
          EXPECT_EQ(sent("dcp-a2a"), others(q + o + lse));
          EXPECT_EQ(sent("dcp"), others(q + o) + (shards - 1) * lse);
        }
      }
    }
  }
}

// 8 ranks of 16 heads: keys of 192 and values of 128 elements of 2 bytes. A ring sends 7 of K and V; Ulysses 7/8 of Q, K, V and O;
// passing queries Q, O and log-sum-exps.
TEST(volume, of_keys_and_values_of_their_own_sizes) {
  const attention a{
      .heads = 16, .kv_heads = 16, .head_dim = 192, .v_head_dim = 128, .sequence = 8192};
  const auto token = 16 * (192 + 128) * 2;
  EXPECT_EQ(sent_in_all({.schedule = "ring", .rows = 8, .cols = 1}, a), 7 * 1024 * token);
  EXPECT_EQ(sent_in_all({.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 8}, a),
            1024 / 8 * 7 * 2 * token);
  EXPECT_EQ(sent_in_all({.schedule = "passq-ring", .rows = 8, .cols = 1}, a),
            7 * 1024 * (token + 16 * 4));
  for (const auto& s : strategies(8, a)) {
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      if (has_pass(s, pass)) expect_what_is_sent(s, a, pass);
    }
  }
}

// One K/V head of 576 elements of 2 bytes that holds its values: a rank sends 7 x 1024 x 1152 bytes and keeps as many as its keys.
TEST(volume, of_values_in_keys_is_the_keys) {
  const attention a{.heads = 16,
                    .kv_heads = 1,
                    .head_dim = 576,
                    .v_head_dim = 512,
                    .sequence = 8192,
                    .latent = true};
  const strategy ring{.schedule = "ring", .rows = 8, .cols = 1};
  EXPECT_EQ(sent_in_all(ring, a), 7 * 1024 * 1152);
  const auto program = make_schedule(ring, a, pass_kind::forward);
  EXPECT_EQ(peak_memory(workload(program, a, ring.tokens, true)).cache.value(), 1024 * 1152);
  for (const auto& s : strategies(8, a)) expect_what_is_sent(s, a, pass_kind::forward);
}

// gpt-oss on 8 ranks: 8 K/V heads of 64 in 2 bytes, K and V of a token are 2 KiB. Of 128K tokens a ring sends 7 shards of 32 MiB,
// a window of 128 needs 127 tokens; backward their gradients, in either format.
TEST(volume, of_a_windows_halo_is_the_window_whatever_the_length) {
  attention a{.heads = 64, .kv_heads = 8, .head_dim = 64, .window = 128};
  strategy s{.rows = 8, .cols = 1, .tokens = token_layout::contiguous};
  const auto sent = [&](const char* schedule, pass_kind pass) {
    s.schedule = schedule;
    const auto program = make_schedule(s, a, pass);
    const workload w(program, a, s.tokens, true);
    for (int rank = 1; rank < w.ranks(); ++rank)
      EXPECT_EQ(w.bytes_sent(rank), w.bytes_sent(0)) << schedule;
    expect_what_is_sent(s, a, pass);
    return w.bytes_sent(0).value();
  };
  constexpr std::int64_t kib = 1024;
  for (const std::int64_t tokens : {16 * kib, 128 * kib, 1024 * kib}) {
    a.sequence = tokens;
    EXPECT_EQ(sent("ring", pass_kind::forward), tokens / 8 * 7 * 2 * kib);
    EXPECT_EQ(sent("halo", pass_kind::forward), 254 * kib);
    s.gradients = precision::storage;
    EXPECT_EQ(sent("halo", pass_kind::backward), 254 * kib);
    s.gradients = precision::fp32;
    EXPECT_EQ(sent("halo", pass_kind::backward), 508 * kib);
  }
  a.sequence = 128 * kib;
  EXPECT_EQ(sent("ring", pass_kind::forward), 224 * kib * kib);
}

// StreamingLLM's 4 first tokens on the 8 ranks of gpt-oss: 7 x 4 tokens of 2 KiB more, backward these and their gradients.
TEST(volume, of_a_halo_with_first_tokens_that_stay_visible) {
  const attention a{.heads = 64,
                    .kv_heads = 8,
                    .head_dim = 64,
                    .sequence = 131072,
                    .window = 128,
                    .kept_first = 4};
  strategy s{.schedule = "halo", .rows = 8, .cols = 1, .tokens = token_layout::contiguous};
  s.gradients = precision::storage;
  EXPECT_EQ(sent_in_all(s, a), 254 * 1024 + 7 * 4 * 2048);
  expect_what_is_sent(s, a, pass_kind::forward);
  expect_what_is_sent(s, a, pass_kind::backward);
  const auto program = make_schedule(s, a, pass_kind::backward);
  EXPECT_EQ(workload(program, a, s.tokens, true).bytes_sent(0).value(),
            254 * 1024 + 2 * 7 * 4 * 2048);
}

// Any window, also over several chunks: w - 1 tokens of K and V, 2 x 2 heads x 16 x 2 bytes each, at most those before the last.
TEST(volume, of_a_halo_over_several_chunks) {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    for (std::int64_t window = 1; window <= 8 * ranks; ++window) {
      const attention a{
          .heads = 4, .kv_heads = 2, .head_dim = 16, .sequence = 8 * ranks, .window = window};
      const strategy s{
          .schedule = "halo", .rows = ranks, .cols = 1, .tokens = token_layout::contiguous};
      expect_what_is_sent(s, a, pass_kind::forward);
      expect_what_is_sent(s, a, pass_kind::backward);
      EXPECT_EQ(sent_in_all(s, a), 128 * std::min<std::int64_t>(window - 1, 8 * (ranks - 1)));
    }
  }
}

// A rank keeps the prefix of its share of the heads: only new tokens are exchanged.
TEST(volume, of_an_exchange_of_heads_does_not_grow_with_the_prefix) {
  const strategy s{.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 4};
  attention a{.heads = 32, .kv_heads = 4, .sequence = 1024};
  const auto without = sent_in_all(s, a);
  EXPECT_EQ(without, 256 * (2 * 32 + 2 * 4) * 128 * 2 * 3 / 4);
  a.prefix = 64 * 1024;
  EXPECT_EQ(sent_in_all(s, a), without);
}

// On 2 x 3 places with heads exchanged in groups of 4: axes are rows, columns, heads, tensor-parallel shares.
TEST(volume, names_axes_of_the_whole_grid) {
  const strategy s{.schedule = "mesh", .rows = 2, .cols = 3, .ulysses = 4, .tensor_parallel = 5};
  EXPECT_EQ(whole_grid(s).extents(), (std::vector{2, 3, 4, 5}));
  EXPECT_EQ(exchange_axis(whole_grid(s)), only(2));
  const strategy teams{.schedule = "startrail", .rows = 6, .cols = 3};
  EXPECT_EQ(whole_grid(teams).extents(), (std::vector{2, 3, 3, 1, 1}));
  EXPECT_EQ(exchange_axis(whole_grid(teams)), only(3));
}

}  // namespace volume_test
}  // namespace attnsim
