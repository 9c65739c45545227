#include "ask/predicted_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace attnsim::ask {
namespace predicted_run_test {

const attention layer{.heads = 8, .kv_heads = 8, .sequence = 65536, .mask = mask_kind::full};
const strategy ring{.schedule = "ring", .tokens = token_layout::contiguous};

struct on_four_nodes : testing::Test {
  predicted_run run(pass_kind pass, prediction_method by, recording keeps) const {
    return {c, layer, ring, 4, pass, by, keeps};
  }
  const cluster c = read_cluster("star", {.nodes = 4});
};
using predicted_run_of = on_four_nodes;

TEST_F(predicted_run_of, figures_are_those_of_predict) {
  const auto asked = run(pass_kind::both, prediction_method::simulation, recording::loads);
  const auto p = predict(c, layer, ring, 4, pass_kind::both);
  EXPECT_EQ(asked.prediction().time, p.time);
  EXPECT_EQ(asked.prediction().low, p.low);
  EXPECT_EQ(asked.prediction().most_bytes_sent, p.most_bytes_sent);
}

TEST_F(predicted_run_of, each_pass_is_simulated_once_for_numbers_and_timelines) {
  auto asked = run(pass_kind::both, prediction_method::simulation, recording::loads);
  EXPECT_EQ(asked.simulations(), 2);
  const auto& passes = asked.passes();
  EXPECT_EQ(&asked.passes(), &passes);
  EXPECT_EQ(asked.simulations(), 2);
  ASSERT_EQ(passes.size(), 2u);
  EXPECT_EQ(passes[0].program.pass, pass_kind::forward);
  EXPECT_EQ(passes[1].program.pass, pass_kind::backward);
  EXPECT_EQ(passes[0].start, seconds());
  EXPECT_EQ(passes[1].start, asked.prediction().passes[0].time);
  EXPECT_EQ(passes[1].start + passes[1].times.duration(), asked.prediction().time);
  EXPECT_FALSE(passes[0].times.ranks[0].intervals.empty());
  EXPECT_FALSE(passes[0].times.links[0].samples.empty());
}

TEST_F(predicted_run_of, a_pass_that_runs_twice_is_simulated_once) {
  auto asked = run(pass_kind::recompute, prediction_method::simulation, recording::slowest);
  EXPECT_EQ(asked.simulations(), 2);
  const auto& passes = asked.passes();
  ASSERT_EQ(passes.size(), 3u);
  EXPECT_EQ(asked.simulations(), 2);
  EXPECT_EQ(passes[1].start, passes[0].times.duration());
  EXPECT_EQ(passes[2].start, 2 * passes[0].times.duration());
  EXPECT_EQ(asked.prediction().passes[0].time, asked.prediction().passes[1].time);
  EXPECT_TRUE(passes[0].times.links[0].samples.empty());
}

TEST_F(predicted_run_of, what_was_not_kept_is_simulated_when_it_is_asked_for) {
  auto asked = run(pass_kind::forward, prediction_method::simulation, recording::totals);
  EXPECT_EQ(asked.simulations(), 1);
  EXPECT_EQ(asked.passes()[0].times.duration(), asked.prediction().time);
  EXPECT_EQ(asked.simulations(), 2);
}

TEST_F(predicted_run_of, the_closed_form_has_timelines_by_simulation) {
  auto asked = run(pass_kind::forward, prediction_method::analytic, recording::totals);
  EXPECT_EQ(asked.simulations(), 0);
  EXPECT_EQ(asked.passes().size(), 1u);
  EXPECT_EQ(asked.simulations(), 1);
}

TEST_F(predicted_run_of, a_candidate_is_simulated_as_one_group_of_its_batch) {
  auto p = predict(c, layer, ring, 4, pass_kind::forward);
  const auto time = p.time;
  p.data_parallel = 2;
  p.problem.batch = 2;
  p.ranks = 8;
  predicted_run asked(c, p);
  EXPECT_EQ(asked.simulations(), 0);
  EXPECT_EQ(asked.passes()[0].times.duration(), time);
  EXPECT_EQ(asked.simulations(), 1);
}

TEST_F(predicted_run_of, a_question_is_its_fields) {
  question q;
  q.ranks = 4;
  q.sequence = 65536;
  q.heads = 8;
  q.mask = mask_kind::full;
  q.pass = pass_kind::forward;
  EXPECT_EQ(predicted_run(q, c).prediction().time,
            predict(c, layer, ring, 4, pass_kind::forward).time);
}

// Transfers that wait for persistent kernels: without an order the interval holds both orders' intervals.
TEST(predicted_run, an_order_that_nobody_asks_for_may_be_either) {
  question q{.cluster = "nd-h100-v5", .ranks = 16, .sequence = 65536, .schedule = "ring"};
  q.tokens = token_layout::zigzag;
  const auto c = cluster_of(q);
  const auto by = [&](std::optional<launch_order> order) {
    q.launch = order;
    return predict(q, c);
  };
  const auto first = by(launch_order::communication_first), late = by(launch_order::compute_first);
  ASSERT_LT(first.high, late.high);
  const auto either = by({});
  EXPECT_EQ(either.time, first.time);
  EXPECT_EQ(either.low, std::min(first.low, late.low));
  EXPECT_EQ(either.high, late.high);
  EXPECT_EQ(either.passes[0].high, late.passes[0].high);
}

}  // namespace predicted_run_test
}  // namespace attnsim::ask
