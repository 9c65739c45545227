#include "model/cost/local.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "model/cost/kernel.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim {
namespace local_test {

/// A launch takes 5 us, memory a byte in 1 ps.
device_profile launching() {
  device_profile d;
  d.peak_half = flop_rate(1e30);
  d.memory_bandwidth = bandwidth(1e12);
  d.kernel_launch = seconds(5e-6);
  return d;
}

/// A ring of two, whose second step adds to what the first has left.
class second_step {
 public:
  explicit second_step(const attention& a, pass_kind pass = pass_kind::forward)
      : program_(make_schedule({.schedule = "ring", .rows = 2, .cols = 1}, a, pass)),
        work_(program_, a, token_layout::zigzag, false),
        device_(launching()),
        costs_(work_, device_, nullptr, run_start::in_sequence) {
    for (std::size_t op = 0; op < program_.program.size(); ++op) {
      if (is_kernel(program_.program[op].kind)) last_ = op;
    }
  }

  const memory_calls& memory() const { return costs_.memory(last_, 0); }
  int calls() const { return costs_.calls(last_, 0); }
  double time() const { return costs_.time(last_, 0).value(); }
  std::int64_t scratch() const { return work_.scratch_bytes().value(); }

 private:
  schedule program_;
  workload work_;
  device_profile device_;
  local_costs costs_;
  std::size_t last_ = 0;
};

attention packed(std::int64_t documents) {
  return {.heads = 2,
          .kv_heads = 2,
          .sequence = 32 * documents,
          .documents = std::vector<std::int64_t>(static_cast<std::size_t>(documents), 32)};
}

// Rank 0 has the first and the last 8 tokens of each document; the last 8 see both pieces of rank 1. Of 8 tokens of 2 heads of
// 128 the partial output is read in 2 bytes, the sum in 4 and written so; their log-sum-exps are 4 bytes thrice.
constexpr std::int64_t a_document = 8 * 2 * (128 * (2 + 4 + 4) + 3 * 4);

TEST(local_costs, results_of_packed_documents_are_added_in_one_call) {
  for (const std::int64_t documents : {2, 64}) {
    const second_step step(packed(documents));
    EXPECT_EQ(step.calls(), 1);
    EXPECT_EQ(step.memory().count, 1);
    EXPECT_EQ(step.memory().additions, 1);
    EXPECT_EQ(step.memory().traffic.value(), documents * a_document);
    // The kernel's own time is below a microsecond.
    EXPECT_NEAR(step.time(), 2 * 5e-6 + 1e-12 * static_cast<double>(documents * a_document), 1e-6);
  }
}

// dQ is added to; dK and dV go to buffers of their own.
TEST(local_costs, gradients_of_packed_documents_are_added_in_one_call) {
  for (const std::int64_t documents : {2, 64})
    EXPECT_EQ(second_step(packed(documents), pass_kind::backward).memory().count, 1);
}

// What the kernel of all documents leaves: 16 tokens a document and rank, 2 bytes an element and 4 a log-sum-exp.
TEST(local_costs, packed_documents_need_scratch_for_all) {
  for (const std::int64_t documents : {2, 64})
    EXPECT_EQ(second_step(packed(documents)).scratch(), documents * 16 * 2 * (128 * 2 + 4));
}

// Requests of 6, 2 and 2 cached tokens and one new one on two striped ranks: rank 0 has 4, 2 and 2 keys of them (positions 0, 2, 4,
// 6), rank 1 has 3, 1 and 1. One call of three requests with as many keys as on average, rounded up: 3 and 2; its work is the sum's,
// 8 and 5 pairs of two heads.
TEST(local_costs, requests_of_several_lengths_are_one_call) {
  const attention a{
      .batch = 3, .heads = 2, .kv_heads = 2, .sequence = 1, .prefix = 6, .prefixes = {6, 2, 2}};
  const strategy s{.schedule = "helix", .rows = 2, .cols = 1, .tokens = token_layout::striped};
  const auto program = make_schedule(s, a, pass_kind::forward);
  const workload work(program, a, s.tokens, false);
  const auto device = launching();
  const local_costs costs(work, device, nullptr, run_start::in_sequence);
  for (const int rank : {0, 1}) {
    const kernel_call mean{.batch = 3,
                           .heads = 2,
                           .kv_heads = 2,
                           .rows = 1,
                           .cols = rank == 0 ? 3 : 2,
                           .pairs = rank == 0 ? 3 : 2};
    for (std::size_t op = 0; op < program.program.size(); ++op) {
      if (!is_kernel(program.program[op].kind)) continue;
      EXPECT_EQ(costs.calls(op, rank), 1);
      EXPECT_EQ(costs.time(op, rank), kernel_time(device, nullptr, mean));
      EXPECT_EQ(costs.flops(op, rank).value(), 4.0 * 128 * 2 * (rank == 0 ? 8 : 5));
    }
  }
}

/// Last numbers first.
void backwards(std::size_t count, const std::function<void(std::size_t)>& body) {
  for (auto n = count; n > 0; --n) body(n - 1);
}

// 4,128 ranks of a grid, each with its own part of the mask: more than are worked out at a time, and not a multiple of it.
TEST(local_costs, on_all_ranks_as_one_by_one) {
  const attention a{.heads = 2, .kv_heads = 2, .sequence = 4128 * 16, .mask = mask_kind::causal};
  const auto device = launching();
  for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
    const auto program =
        make_schedule({.schedule = "attention2d", .rows = 32, .cols = 129}, a, pass);
    const workload work(program, a, token_layout::zigzag, false);
    const local_costs asked(work, device, nullptr, run_start::in_sequence),
        found(work, device, nullptr, run_start::in_sequence);
    for (std::size_t op = 0; op < program.program.size(); ++op) {
      found.find_on_all_ranks(op, backwards);
      for (int rank = work.ranks(); is_kernel(program.program[op].kind) && rank-- > 0;) {
        ASSERT_EQ(found.time(op, rank).value(), asked.time(op, rank).value()) << rank;
        ASSERT_EQ(found.parts(op, rank), asked.parts(op, rank)) << rank;
        ASSERT_EQ(found.calls(op, rank), asked.calls(op, rank)) << rank;
      }
    }
  }
}

}  // namespace local_test
}  // namespace attnsim
