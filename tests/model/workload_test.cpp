#include "model/cost/workload.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>

#include "model/cost/memory.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace workload_test {

constexpr int all_ranks[] = {4, 6, 9, 16, 36, 64, 256};

attention problem(int ranks, std::int64_t group_size) {
  return {.batch = 2,
          .heads = 16,
          .kv_heads = 16 / group_size,
          .head_dim = 64,
          .sequence = ranks * 4,
          .mask = mask_kind::full};
}

/// One rank's shards in bytes, with N/P = 4 tokens, batch 2, 16 heads of 64, bf16 (papers, "Common notation"):
///   q  = 2 * 4 * 16 * 64 * 2 B = 16384 B    kv = q / g    l = 2 * 4 * 16 * 4 B = 512 B
struct shard_bytes {
  std::int64_t q = 16384, kv, l = 512;
  explicit shard_bytes(std::int64_t group_size) : kv(16384 / group_size) {}
};

std::int64_t bytes_sent(const strategy& s, const attention& a, pass_kind pass, int rank) {
  const auto program = make_schedule(s, a, pass);
  return workload(program, a, token_layout::contiguous, true).bytes_sent(rank).value();
}

class bytes_per_rank : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  int group_size() const { return std::get<1>(GetParam()); }
  attention a() const { return problem(ranks(), group_size()); }
};

// Ring: K and V make P - 1 hops forward; backward dK, dV make P.
TEST_P(bytes_per_rank, ring) {
  const shard_bytes b(group_size());
  const std::int64_t P = ranks();
  const strategy s{.schedule = "ring", .rows = ranks(), .cols = 1};
  EXPECT_EQ(bytes_sent(s, a(), pass_kind::forward, 0), 2 * b.kv * (P - 1));
  EXPECT_EQ(bytes_sent(s, a(), pass_kind::backward, 0), 2 * b.kv * (P - 1) + 2 * b.kv * P);
  // Gradients in fp32 on the wire double only their part (zhuzilin/ring-flash-attention).
  auto fp32 = s;
  fp32.gradients = precision::fp32;
  EXPECT_EQ(bytes_sent(fp32, a(), pass_kind::backward, 0), 2 * b.kv * (P - 1) + 4 * b.kv * P);
}

// On R x C: forward  (C-1) q + (R-1) 2kv + (C-1)(q + l)
//           backward (C-1)(2q + 2l) + (R-1) 2kv + (C-1) q + (R-1) 2kv
TEST_P(bytes_per_rank, two_dimensional) {
  const shard_bytes b(group_size());
  for (const auto& [rows, cols] : grids_of(ranks())) {
    const std::int64_t R = rows, C = cols;
    const auto forward = (C - 1) * b.q + (R - 1) * 2 * b.kv + (C - 1) * (b.q + b.l);
    const auto backward =
        (C - 1) * (2 * b.q + 2 * b.l) + (R - 1) * 2 * b.kv + (C - 1) * b.q + (R - 1) * 2 * b.kv;
    for (const auto* name : {"attention2d", "attention2d-overlap", "mesh"}) {
      const strategy s{.schedule = name, .rows = rows, .cols = cols};
      EXPECT_EQ(bytes_sent(s, a(), pass_kind::forward, 0), forward)
          << name << " " << rows << "x" << cols;
      EXPECT_EQ(bytes_sent(s, a(), pass_kind::backward, 0), backward)
          << name << " " << rows << "x" << cols;
    }
    // The exchange of partial outputs by all-to-all moves the same bytes.
    const strategy exchange{.schedule = "attention2d",
                            .rows = rows,
                            .cols = cols,
                            .reduction = reduction_kind::all_to_all};
    EXPECT_EQ(bytes_sent(exchange, a(), pass_kind::forward, 0), forward);
    // fp32 partial outputs and gradients, E = 2.
    const strategy wide{.schedule = "mesh",
                        .rows = rows,
                        .cols = cols,
                        .partials = precision::fp32,
                        .gradients = precision::fp32};
    EXPECT_EQ(bytes_sent(wide, a(), pass_kind::forward, 0), forward + (C - 1) * b.q);
    EXPECT_EQ(bytes_sent(wide, a(), pass_kind::backward, 0),
              backward + (C - 1) * b.q + (R - 1) * 2 * b.kv);
  }
}

// All keys in two stages: (C-1) 2kv, then C times that from R-1 others: (P-1) 2kv, and dK, dV as many.
TEST_P(bytes_per_rank, hierarchical_allgather) {
  const shard_bytes b(group_size());
  const std::int64_t P = ranks();
  for (const auto& [rows, cols] : grids_of(ranks())) {
    if (rows == 1 || cols == 1) continue;
    const strategy s{.schedule = "hierarchical-allgather", .rows = rows, .cols = cols};
    EXPECT_EQ(bytes_sent(s, a(), pass_kind::forward, 0), (P - 1) * 2 * b.kv);
    EXPECT_EQ(bytes_sent(s, a(), pass_kind::backward, 0), 2 * (P - 1) * 2 * b.kv);
  }
}

// However the ring is folded, K, V make P - 1 hops and dK, dV make P.
TEST_P(bytes_per_rank, double_ring) {
  const shard_bytes b(group_size());
  const std::int64_t P = ranks();
  for (const auto& [rows, cols] : grids_of(ranks())) {
    if (rows == 1 || cols == 1) continue;
    const strategy s{.schedule = "double-ring", .rows = rows, .cols = cols};
    EXPECT_EQ(bytes_sent(s, a(), pass_kind::forward, 0), (P - 1) * 2 * b.kv);
    EXPECT_EQ(bytes_sent(s, a(), pass_kind::backward, 0), (P - 1) * 2 * b.kv + P * 2 * b.kv);
  }
}

// Queries travel: q, d_o, two statistics and dQ, each P - 1 hops; forward of tokenring q and (o, lse).
TEST_P(bytes_per_rank, travelling_queries) {
  const shard_bytes b(group_size());
  const std::int64_t P = ranks();
  const strategy burst{.schedule = "burst", .rows = ranks(), .cols = 1};
  EXPECT_EQ(bytes_sent(burst, a(), pass_kind::forward, 0), (P - 1) * 2 * b.kv);
  EXPECT_EQ(bytes_sent(burst, a(), pass_kind::backward, 0), (P - 1) * (3 * b.q + 2 * b.l));
  const strategy straight{.schedule = "tokenring", .rows = ranks(), .cols = 1};
  EXPECT_EQ(bytes_sent(straight, a(), pass_kind::forward, 0), (P - 1) * (2 * b.q + b.l));
  EXPECT_EQ(bytes_sent(straight, a(), pass_kind::backward, 0), (P - 1) * (3 * b.q + 2 * b.l));
}

// Teams of C, N = P/C^2 groups in the ring: (C-1)(q + 2kv) gathered, (N-1) C 2kv round, (C-1)(q + l) reduced. Backward
// gathers (C-1)(2q + 2l + 2kv), sends (N-1) C 2kv and N C 2kv of gradients round, reduces (C-1)(q + 2kv).
TEST_P(bytes_per_rank, startrail) {
  const shard_bytes b(group_size());
  for (const auto& [rows, cols] : grids_of(ranks())) {
    if (cols == 1 || rows % cols != 0) continue;
    const std::int64_t C = cols, N = rows / cols;
    const strategy s{.schedule = "startrail", .rows = rows, .cols = cols};
    EXPECT_EQ(bytes_sent(s, a(), pass_kind::forward, 0),
              (C - 1) * (b.q + 2 * b.kv) + (N - 1) * C * 2 * b.kv + (C - 1) * (b.q + b.l));
    EXPECT_EQ(bytes_sent(s, a(), pass_kind::backward, 0),
              (C - 1) * (2 * b.q + 2 * b.l + 2 * b.kv) + (N - 1) * C * 2 * b.kv +
                  (N == 1 ? 0 : N * C * 2 * b.kv) + (C - 1) * (b.q + 2 * b.kv));
  }
}

// Ulysses sends all but its own share: (U-1)/U (2q + 2kv) each way, whatever is inside.
TEST_P(bytes_per_rank, exchange_of_heads) {
  const shard_bytes b(group_size());
  for (const int U : {2, 4, 8}) {
    if (ranks() % U != 0 || a().kv_heads % U != 0) continue;
    const std::int64_t R = ranks() / U;
    const auto around = (2 * b.q + 2 * b.kv) / U * (U - 1);
    const strategy usp{.schedule = "usp", .rows = ranks() / U, .cols = 1, .ulysses = U};
    EXPECT_EQ(bytes_sent(usp, a(), pass_kind::forward, 0), around + (R - 1) * 2 * b.kv);
    EXPECT_EQ(bytes_sent(usp, a(), pass_kind::backward, 0),
              around + (R - 1) * 2 * b.kv + (R == 1 ? 0 : R * 2 * b.kv));
    const strategy row{.schedule = "attention2d", .rows = 1, .cols = ranks() / U, .ulysses = U};
    EXPECT_EQ(bytes_sent(row, a(), pass_kind::forward, 0), around + (R - 1) * (2 * b.q + b.l));
  }
}

// 16 query and 2 K/V heads on 4 ranks: each gets one K/V head of its 4 query heads, half of all, so 3 times a quarter of
// q and 3 times half of kv leave. On 3 ranks 4 K/V heads are shared out as 2, 1, 1 and slots have room for 2 of 4.
TEST(workload, key_heads_that_do_not_divide) {
  auto a = problem(4, 8);
  const shard_bytes b(8);
  const strategy copies{.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 4};
  EXPECT_EQ(bytes_sent(copies, a, pass_kind::forward, 0), 3 * (2 * b.q / 4 + 2 * b.kv / 2));

  a = problem(3, 4);
  const strategy uneven{.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 3};
  EXPECT_EQ(bytes_sent(uneven, a, pass_kind::forward, 0), 2 * (2 * b.q / 2 + 2 * 4096 / 2));
  const auto program = make_schedule(uneven, a, pass_kind::forward);
  const workload w(program, a, token_layout::contiguous, true);
  EXPECT_EQ(w.heads(0, head_form::share), (head_range{0, 8, 0, 2}));
  EXPECT_EQ(w.heads(2, head_form::share), (head_range{12, 4, 3, 1}));
}

// Tensor parallelism over T ranks leaves each 1/T of every byte.
TEST(workload, tensor_parallel_ranks_send_their_heads) {
  const auto a = problem(8, 4);
  strategy s{.schedule = "ring", .rows = 8, .cols = 1};
  const auto alone = bytes_sent(s, a, pass_kind::backward, 0);
  s.tensor_parallel = 4;
  EXPECT_EQ(bytes_sent(s, a, pass_kind::backward, 0), alone / 4);
}

// The paper's order adds a grid transpose of K, V forward and of dK, dV backward: 2 kv off the diagonal, nothing on it.
TEST_P(bytes_per_rank, transposed_order) {
  const shard_bytes b(group_size());
  for (const auto& [rows, cols] : grids_of(ranks())) {
    if (rows != cols) continue;
    for (const auto* name : {"attention2d", "attention2d-overlap"}) {
      const strategy direct{
          .schedule = name, .rows = rows, .cols = cols, .tokens = token_layout::striped};
      auto transposed = direct;
      transposed.order = kv_order::transposed;
      for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
        const auto without = bytes_sent(direct, a(), pass, 0);
        EXPECT_EQ(bytes_sent(transposed, a(), pass, 0), without);             // rank 0 is (0,0)
        EXPECT_EQ(bytes_sent(transposed, a(), pass, 1), without + 2 * b.kv);  // rank 1 is (0,1)
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(all, bytes_per_rank,
                         testing::Combine(testing::ValuesIn(all_ranks), testing::Values(1, 4, 8)));

/// Forward and backward bytes without the row statistics, which the papers' ratios leave out: 1 + 1/32 of q for bf16 and
/// 128 elements a head is statistics per chunk; they are taken off here by counting tensors only.
double tensor_bytes(const strategy& s, const attention& a, int rank) {
  double total = 0;
  for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
    const auto program = make_schedule(s, a, pass);
    const workload w(program, a, s.tokens, true);
    for (auto op : program.program) {
      std::erase_if(op.reads, [](const operand& o) { return is_statistic(o.what); });
      total += static_cast<double>(w.bytes_sent(op, rank).value());
    }
  }
  return total;
}

// MHA, bf16: ring (2P - 2) + (4P - 2) = 6P - 4 q; square attention2d (4 sqrt(P) - 2) + (7 sqrt(P) - 5) q with transpose.
//   P = 16: 92 / 37 = 2.486        P = 64: 380 / 81 = 4.691
TEST(workload, ratio_of_ring_to_attention2d) {
  for (const auto& [ranks, side, ratio] :
       {std::tuple{16, 4, 92.0 / 37}, std::tuple{64, 8, 380.0 / 81}}) {
    const auto a = problem(ranks, 1);
    const strategy ring{.schedule = "ring", .rows = ranks, .cols = 1};
    const strategy square{.schedule = "attention2d",
                          .rows = side,
                          .cols = side,
                          .tokens = token_layout::striped,
                          .order = kv_order::transposed};
    EXPECT_DOUBLE_EQ(tensor_bytes(ring, a, 1) / tensor_bytes(square, a, 1), ratio);
  }
}

// A tile of a = 8 query and b = 32 key chunks, grid 32 x 8, P = 256, MHA, bf16 partials with their statistics:
//   ring 1532 q; mesh (5*7 + 6*31) q + (7 + 14) l = 221 q + 21 l, l = q/64 with 128 elements a head: 221.33 q
//   saved 1 - 221.33 / 1532 = 85.55 %
TEST(workload, mesh_tile_8_by_32_saves_85_6_percent) {
  auto a = problem(256, 1);
  a.head_dim = 128;
  const auto both = [&](const strategy& s) {
    return static_cast<double>(bytes_sent(s, a, pass_kind::forward, 0) +
                               bytes_sent(s, a, pass_kind::backward, 0));
  };
  const double saved = 1 - both({.schedule = "mesh", .rows = 32, .cols = 8}) /
                               both({.schedule = "ring", .rows = 256, .cols = 1});
  EXPECT_NEAR(saved, 0.8555, 5e-5);
}

// Backward, mesh with one query chunk a tile and ring differ by the homeward hop of dK, dV: 2 kv.
TEST(workload, mesh_of_one_query_chunk_is_ring) {
  for (const int ranks : all_ranks) {
    const auto a = problem(ranks, 1);
    const strategy ring{.schedule = "ring", .rows = ranks, .cols = 1};
    const strategy mesh{.schedule = "mesh", .rows = ranks, .cols = 1};
    EXPECT_EQ(bytes_sent(mesh, a, pass_kind::forward, 0),
              bytes_sent(ring, a, pass_kind::forward, 0));
    EXPECT_EQ(
        bytes_sent(ring, a, pass_kind::backward, 0) - bytes_sent(mesh, a, pass_kind::backward, 0),
        2 * 16384);
  }
}

/// Visible pairs of all blocks that a rank computes in a forward ring.
std::int64_t ring_work(token_layout tokens, int ranks, std::int64_t sequence, int rank) {
  const attention a{.heads = 1, .kv_heads = 1, .sequence = sequence};
  const auto program =
      make_schedule({.schedule = "ring", .rows = ranks, .cols = 1}, a, pass_kind::forward);
  const workload w(program, a, tokens, true);
  std::int64_t pairs = 0;
  for (const auto& op : program.program) {
    if (!is_kernel(op.kind)) continue;
    for (const auto& t : w.tiles(op, rank)) pairs += t.pairs();
  }
  return pairs;
}

// n = N/P = 64 tokens a rank, P = 8. Rank r of contiguous chunks sees r full blocks of n^2 and its own triangle:
// r n^2 + (n^2 + n)/2. Largest over mean: (7 + 1/2 + 1/(2n)) / (3.5 + 1/2 + 1/(2n)) -> 15/8 for whole blocks.
TEST(workload, causal_balance_of_contiguous_ring) {
  constexpr std::int64_t n = 64;
  std::int64_t total = 0;
  for (int rank = 0; rank < 8; ++rank) {
    const auto work = ring_work(token_layout::contiguous, 8, 8 * n, rank);
    EXPECT_EQ(work, rank * n * n + (n * n + n) / 2);
    total += work;
  }
  const double largest_over_mean =
      static_cast<double>(ring_work(token_layout::contiguous, 8, 8 * n, 7)) / (total / 8.0);
  EXPECT_NEAR(largest_over_mean, 15.0 / 8, 1.0 / n);
  EXPECT_DOUBLE_EQ(largest_over_mean,
                   (7 * n * n + (n * n + n) / 2) / (3.5 * n * n + (n * n + n) / 2));
}

TEST(workload, causal_balance_of_zigzag_ring_is_exact) {
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(ring_work(token_layout::zigzag, 8, 8 * 64, rank),
              ring_work(token_layout::zigzag, 8, 8 * 64, 0));
  }
}

// Striped: every block is a triangle of (n^2 + n)/2 (keys not after the queries) or (n^2 - n)/2 pairs, so rank r has
// (r + 1) of the first kind: (P n^2 + (2r + 2 - P) n) / 2, at most 1 + 1/n of the mean.
TEST(workload, causal_balance_of_striped_ring_is_within_its_bound) {
  constexpr std::int64_t n = 64;
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(ring_work(token_layout::striped, 8, 8 * n, rank),
              (8 * n * n + (2 * rank + 2 - 8) * n) / 2);
  }
}

// 4 tokens of 16 heads of 64 in batches of 2: 8192 elements. A ring step adds its partial to the output: 2 bytes read, 4
// read and 4 written. One operation at a time: to fp32 (2 read, 4 written), difference (8, 4), times weight (4, 4), sum
// (8, 4), together 38. The log-sum-exps, of which there are 128, take 12 bytes either way.
TEST(workload, unfused_merges_read_and_write_more) {
  const auto a = problem(4, 1);
  const auto program =
      make_schedule({.schedule = "ring", .rows = 4, .cols = 1}, a, pass_kind::forward);
  const auto of_second_step = [&](merge_kind merges) {
    const workload w(program, a, token_layout::contiguous, true, merges);
    int steps = 0;
    for (const auto& op : program.program) {
      if (is_kernel(op.kind) && ++steps == 2)
        return w.accumulation_of(op, w.tiles(op, 0).front()).traffic.value();
    }
    return std::int64_t{0};
  };
  EXPECT_EQ(of_second_step(merge_kind::fused), 8192 * 10 + 128 * 12);
  EXPECT_EQ(of_second_step(merge_kind::unfused), 8192 * 38 + 128 * 12);
}

// Two partial outputs of a row become one: each is read and the result written in 2 bytes, 28 more of unfused fp32 steps.
TEST(workload, unfused_merges_of_partials_that_were_sent) {
  const auto a = problem(4, 1);
  const auto program =
      make_schedule({.schedule = "attention2d", .rows = 2, .cols = 2}, a, pass_kind::forward);
  const auto traffic = [&](merge_kind merges) {
    const workload w(program, a, token_layout::contiguous, true, merges);
    std::int64_t bytes = 0;
    for (const auto& op : program.program) {
      if (op.kind == op_kind::merge) bytes += w.memory_calls_of(op).traffic.value();
    }
    return bytes;
  };
  EXPECT_EQ(traffic(merge_kind::unfused) - traffic(merge_kind::fused), 8192 * 28);
}

// Beside the partial in 2 bytes and the log-sum-exps in 4: three fp32 tensors at once.
TEST(workload, unfused_merges_need_scratch) {
  const auto a = problem(4, 1);
  const auto scratch = [&](const strategy& s, merge_kind merges) {
    const auto program = make_schedule(s, a, pass_kind::forward);
    return workload(program, a, token_layout::contiguous, true, merges).scratch_bytes().value();
  };
  const strategy ring{.schedule = "ring", .rows = 4, .cols = 1};
  EXPECT_EQ(scratch(ring, merge_kind::fused), 8192 * 2 + 128 * 4);
  EXPECT_EQ(scratch(ring, merge_kind::unfused), 8192 * (2 + 12) + 128 * 4);
  const strategy attention2d{.schedule = "attention2d", .rows = 2, .cols = 2};
  EXPECT_EQ(scratch(attention2d, merge_kind::unfused), 8192 * 12);
}

TEST(workload, refuses_documents_that_zigzag_tokens_do_not_fit) {
  const attention a{
      .heads = 8, .kv_heads = 8, .sequence = 40016, .padding = 15, .documents = {40001}};
  const auto program =
      make_schedule({.schedule = "ring", .rows = 8, .cols = 1}, a, pass_kind::forward);
  EXPECT_ERROR(workload(program, a, token_layout::zigzag, true), infeasible,
               "documents: '40001': not a multiple of 16, as zigzag tokens of each document over 8 "
               "ranks need; pad each (this one to 40016) or take zigzag-stream");
  EXPECT_NO_THROW(workload(program, a, token_layout::zigzag_stream, true));
  EXPECT_FALSE(fits_layout(a, token_layout::zigzag, 8));
  EXPECT_TRUE(fits_layout(a, token_layout::zigzag_stream, 8));
}

TEST(workload, refuses_a_sequence_that_the_layout_does_not_fit) {
  const attention a{.heads = 8, .kv_heads = 8, .sequence = 1001};
  const auto program =
      make_schedule({.schedule = "ring", .rows = 8, .cols = 1}, a, pass_kind::forward);
  EXPECT_ERROR(
      workload(program, a, token_layout::zigzag, true), infeasible,
      "seq: '1001': not a multiple of 16, as zigzag tokens over 8 ranks need; pad by 7 to 1008 "
      "(0.7 % more tokens, 1.4 % more work) or cut to 992; striped tokens take 1000");
  EXPECT_ERROR(
      workload(program, a, token_layout::striped, true), infeasible,
      "seq: '1001': not a multiple of 8, as striped tokens over 8 ranks need; pad by 7 to 1008 "
      "(0.7 % more tokens, 1.4 % more work) or cut to 1000");
}

// 7 ranks: zigzag wants a multiple of 14, other layouts one of 7.
TEST(workload, names_the_tokens_that_take_the_nearest_length) {
  attention a{.heads = 8, .kv_heads = 8, .sequence = 1000};
  EXPECT_ERROR(require_layout(a, token_layout::zigzag, 7), infeasible,
               "seq: '1000': not a multiple of 14, as zigzag tokens over 7 ranks need; pad by 8 to "
               "1008 (0.8 % more tokens, 1.6 % more work) or cut to 994; striped tokens take 1001");
  EXPECT_ERROR(require_layout(a, token_layout::contiguous, 7), infeasible,
               "seq: '1000': not a multiple of 7, as contiguous tokens over 7 ranks need; pad by 1 "
               "to 1001 (0.1 % more tokens, 0.2 % more work) or cut to 994");
  a.sequence = 1001;
  EXPECT_ERROR(require_layout(a, token_layout::zigzag, 7), infeasible,
               "seq: '1001': not a multiple of 14, as zigzag tokens over 7 ranks need; pad by 7 to "
               "1008 (0.7 % more tokens, 1.4 % more work) or cut to 994; striped tokens take 1001");
}

// Zigzag wants a multiple of 14, the others of 7; 1008 suits all.
TEST(nearest_layout, needs_least_padding) {
  attention a{.heads = 8, .kv_heads = 8, .sequence = 1000};
  const std::array layouts{token_layout::zigzag, token_layout::striped, token_layout::contiguous};
  EXPECT_EQ(nearest_layout(a, layouts, 7), token_layout::striped);
  a.sequence = 1002;
  EXPECT_EQ(nearest_layout(a, layouts, 7), token_layout::zigzag);
}

/// How often there is a tile of each shape.
std::map<std::array<std::int64_t, 6>, std::int64_t> shapes_of(const std::vector<tile>& tiles) {
  std::map<std::array<std::int64_t, 6>, std::int64_t> found;
  for (const auto& t : tiles)
    found[{t.rows, t.cols, t.pairs(), t.mask.causal, t.adds_rows, t.adds_cols}] += t.times;
  return found;
}

TEST(workload, counts_documents_that_are_alike) {
  std::size_t counted = 0, all = 0;
  using lengths = std::vector<std::int64_t>;
  for (const auto& [mask, documents] :
       {std::pair{mask_kind::causal, lengths{16, 48, 16, 16, 48, 16, 16, 64}},
        std::pair{mask_kind::full, lengths{16, 48, 16, 16, 48, 16, 16, 64}},
        std::pair{mask_kind::causal, lengths(8, 16)}, std::pair{mask_kind::full, lengths(8, 16)}}) {
    attention a{.heads = 4, .kv_heads = 4, .mask = mask, .documents = documents};
    a.sequence = std::accumulate(documents.begin(), documents.end(), std::int64_t{0});
    for (const auto& described : algorithms()) {
      for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
        strategy s{.schedule = described.name, .ulysses = 0};
        try {
          s = complete(s, a, 4);
        } catch (const infeasible&) {
          continue;
        }
        if (!has_pass(s, pass)) continue;
        const auto program = make_schedule(s, a, pass);
        const workload w(program, a, token_layout::zigzag, false);
        for (const auto& op : program.program) {
          if (!is_kernel(op.kind)) continue;
          for (int rank = 0; rank < 4; ++rank) {
            const auto each = w.tiles(op, rank), alike = w.counted_tiles(op, rank);
            EXPECT_EQ(shapes_of(alike), shapes_of(each)) << described.name << " rank " << rank;
            counted += alike.size();
            all += each.size();
          }
        }
      }
    }
  }
  EXPECT_LT(counted, all / 2);
}

TEST(workload, of_a_prefix_that_is_not_a_multiple_names_the_nearest) {
  attention a{.heads = 4, .kv_heads = 4, .sequence = 64, .prefix = 100};
  const auto program =
      make_schedule({.schedule = "ring", .rows = 4, .cols = 1}, a, pass_kind::forward);
  EXPECT_ERROR(workload(program, a, token_layout::zigzag, true), infeasible,
               "prefix: '100': not a multiple of 8, as zigzag tokens over 4 ranks need; nearest: "
               "96 and 104");
  a.prefix = 0;
  a.mask = mask_kind::full;
  a.kv_sequence = 3;
  EXPECT_ERROR(workload(program, a, token_layout::contiguous, true), infeasible,
               "kv-seq: '3': not a multiple of 4, as contiguous tokens over 4 ranks need; nearest: "
               "4");
}

// 6 ranks, 2 new and 100 cached tokens: ranks hold 17 of 102 striped ones. 4 K/V heads of 128 in 2 bytes, or 2 of them each.
// A share of heads in an exchange keeps all 12 + 96 tokens of a group.
TEST(workload, says_what_a_cache_keeps) {
  const auto cache = [](const strategy& s, const attention& a) {
    const auto program = make_schedule(s, a, pass_kind::forward);
    return peak_memory(workload(program, a, token_layout::striped, true)).cache.value();
  };
  attention a{.heads = 24, .kv_heads = 4, .sequence = 2, .prefix = 100};
  EXPECT_EQ(cache({.schedule = "helix", .rows = 6, .cols = 1}, a), 17 * 4 * 128 * 2 * 2);
  EXPECT_EQ(cache({.schedule = "dcp", .rows = 3, .cols = 1, .tensor_parallel = 2}, a),
            34 * 2 * 128 * 2 * 2);
  a.sequence = 12, a.prefix = 96;
  EXPECT_EQ(cache({.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 4}, a),
            108 * 128 * 2 * 2);
}

// 4 ranks, 16 new and 96 cached tokens, 4 K/V heads of 128 in 2 bytes: a rank holds 4 + 24 tokens of K and of V.
TEST(workload, keeps_its_shard_of_the_prefix_in_memory) {
  attention a{.heads = 8, .kv_heads = 4, .sequence = 16, .prefix = 96};
  const auto resident = [&](const strategy& s) {
    const auto program = make_schedule(s, a, pass_kind::forward);
    return peak_memory(workload(program, a, token_layout::striped, true)).resident.value();
  };
  const std::int64_t of_queries = 4 * 8 * (128 * 2 * 2 + 4), of_keys = 2 * 4 * 128 * 2;
  EXPECT_EQ(resident({.schedule = "ring", .rows = 4, .cols = 1}), of_queries + 28 * of_keys);
  EXPECT_EQ(resident({.schedule = "passq-ring", .rows = 4, .cols = 1}), of_queries + 28 * of_keys);
}

}  // namespace workload_test
}  // namespace attnsim
