// A schedule that no file of the product knows, described here and added by one call: it is listed, planned, bounded,
// predicted and executed as the others are.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "ask/question.hpp"
#include "model/cost/bound.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"
#include "model/schedule/schedule_check.hpp"
#include "tests/expect_error.hpp"
#include "validate/validate.hpp"

namespace attnsim {
namespace added_schedule_test {

/// All keys are gathered, then all values; backward both again, and the sums of dK, then of dV, are brought home.
schedule gather_apart(const strategy& s, const attention&, pass_kind pass) {
  constexpr axis_set everyone = only(0);
  schedule_builder b(s.schedule, rank_grid({s.rows, 1}), pass);
  const int network = b.stream("network");
  const bool backward = pass == pass_kind::backward;
  auto reads =
      b.own(backward ? std::vector{tensor::q, tensor::d_o, tensor::lse} : std::vector{tensor::q});
  if (backward) {
    const auto delta = b.chunk({tensor::delta}, {});
    b.add(op_kind::delta, 0, operands{find(reads, tensor::d_o)} + b.own({tensor::o}), delta);
    reads = reads + delta;
  }
  for (const auto what : {tensor::k, tensor::v}) {
    const auto all = b.gathered({what}, everyone);
    b.add(op_kind::all_gather, network, b.own({what}), all, everyone);
    reads = reads + all;
  }
  if (!backward) {
    b.add(op_kind::attention, 0, reads, b.own({tensor::o, tensor::lse}));
    return b.finish();
  }
  const auto sums = b.gathered({tensor::d_k, tensor::d_v}, everyone, {}, s.gradients);
  b.add(op_kind::attention_backward, 0, reads, b.own({tensor::d_q}) + sums);
  for (const auto what : {tensor::d_k, tensor::d_v}) {
    const auto own = b.chunk({what}, {}, s.gradients);
    b.add(op_kind::reduce_scatter, network, {find(sums, what)}, own, everyone);
    b.add(op_kind::copy, 0, own, b.own({what}));
  }
  return b.finish();
}

algorithm described(const std::string& name) {
  return {.name = name,
          .summary = "gathers all keys, then all values",
          .source = "this test",
          .generate = gather_apart,
          .refusal = [](const strategy& s, const attention&) -> std::string {
            return s.cols == 1 ? "" : "runs on one column of ranks";
          },
          .sends = [](const strategy& s, const chunk_bytes& b, pass_kind) -> volume {
            return {.parts = {{only(0), (s.rows - 1) * (b.keys + b.key_results)}}, .apart = true};
          },
          .heads = algorithm::exchange::possible,
          .tokens = token_layout::contiguous};
}

class added_schedule : public testing::Test {
 protected:
  static void SetUpTestSuite() { add_algorithm(described("gather-apart")); }
};

const attention layer{.heads = 8, .kv_heads = 4, .head_dim = 64, .sequence = 16384};

TEST_F(added_schedule, is_listed_and_found) {
  EXPECT_EQ(algorithms().back().name, "gather-apart");
  EXPECT_EQ(find_algorithm("gather-apart").source, "this test");
  EXPECT_THAT([] { find_algorithm("none"); },
              testing::ThrowsMessage<std::runtime_error>(testing::EndsWith(", gather-apart")));
}

TEST_F(added_schedule, keeps_its_name_to_itself) {
  EXPECT_ERROR(add_algorithm(described("gather-apart")), std::invalid_argument,
               "there is a schedule called gather-apart already");
  EXPECT_ERROR(add_algorithm(described("ring")), std::invalid_argument,
               "there is a schedule called ring already");
}

TEST_F(added_schedule, computes_every_pair_once) {
  for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
    for (const int ulysses : {1, 2}) {
      const strategy s{.schedule = "gather-apart", .rows = 4, .cols = 1, .ulysses = ulysses};
      EXPECT_NO_THROW(check(make_schedule(s, layer, pass)));
    }
  }
}

TEST_F(added_schedule, is_asked_for_like_any_other) {
  ask::question q{.cluster = "dgx-h100", .ranks = 8, .sequence = layer.sequence};
  ask::set(q, "schedule", "gather-apart");
  ask::set(q, "tokens", "striped");
  const auto p = ask::predict(q, ask::cluster_of(q));
  EXPECT_EQ(p.chosen.schedule, "gather-apart");
  EXPECT_EQ(p.chosen.tokens, token_layout::striped);
  EXPECT_EQ(p.chosen.rows, 8);
  EXPECT_GT(p.time, seconds());
}

TEST_F(added_schedule, is_ranked_among_all_others) {
  const auto c = read_cluster("dgx-h100");
  const auto all = plan(c, {.problem = layer, .ranks = 8});
  const auto is_it = [](const prediction& p) { return p.chosen.schedule == "gather-apart"; };
  EXPECT_TRUE(std::any_of(all.candidates.begin(), all.candidates.end(), is_it));
  const auto alone = plan(c, {.problem = layer, .ranks = 8, .schedules = {"gather-apart"}});
  std::set<int> degrees;
  for (const auto& p : alone.candidates) degrees.insert(p.chosen.ulysses);
  EXPECT_EQ(degrees, (std::set{1, 2, 4}));
}

// It sends what the all-gather of both together does. Of one that tells nothing only the computation is known.
TEST_F(added_schedule, is_bounded_by_what_it_tells) {
  auto silent = described("gather-silently");
  silent.sends = nullptr;
  add_algorithm(silent);
  const auto c = read_cluster("star", {.nodes = 4});
  const time_bound bound(c, layer);
  const auto of = [&](const char* name) {
    const strategy s{.schedule = name, .rows = 4, .cols = 1};
    return bound.of(s, place(s.placement, schedule_grid(s), c), pass_kind::backward);
  };
  const strategy s{.schedule = "gather-apart", .rows = 4, .cols = 1};
  const auto time = predict(c, layer, s, 4, pass_kind::backward).time;
  EXPECT_EQ(of("gather-apart"), of("allgather"));
  EXPECT_LT(of("gather-silently"), of("gather-apart"));
  EXPECT_GT(of("gather-silently"), seconds());
  EXPECT_LE(of("gather-apart"), time);
}

TEST_F(added_schedule, is_executed_and_held_to_the_oracle) {
  const auto on = read_cluster("star", {.nodes = 4});
  attention small = layer;
  small.sequence = 256;
  small.head_dim = 16;
  for (const int ulysses : {1, 2}) {
    const auto v = validate::validate({.on = on,
                                       .problem = small,
                                       .chosen = {.schedule = "gather-apart", .ulysses = ulysses},
                                       .ranks = 4,
                                       .pass = pass_kind::both,
                                       .repeats = {.runs = 1}});
    EXPECT_TRUE(v.passed);
    for (const auto& p : v.passes) EXPECT_LT(p.numbers.relative_error, p.numbers.tolerance);
  }
}

}  // namespace added_schedule_test
}  // namespace attnsim
