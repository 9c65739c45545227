#include "ask/explain.hpp"

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim::ask {
namespace explain_test {

prediction forward(const cluster& c, const attention& a, const std::string& schedule, int ranks) {
  return predict(c, a, {.schedule = schedule, .tokens = token_layout::contiguous}, ranks,
                 pass_kind::forward);
}

// Two ranks, 8 heads of 128: a ring's first step computes for c = 4 n^2 x 8 x 128 / 1 PFLOP/s beside the transfer of K and V,
// x = 2 us + 4096 n bytes over the link, the second for c. Exposed is x - c of x + c, at most 0.05 of it where x is at most
// 1.05 / 0.95 c. For n = 16,384 that takes 67.11 MB / (1.2152 ms - 2 us) = 55.31 GB/s. At 50 GB/s x / c is 1.22 there and
// 0.61 at twice the length.
TEST(compute_bound, a_ring_is_above_a_length_or_a_bandwidth) {
  question q{.cluster = "star"};
  q.overrides = {.nodes = 2, .set = {{"device.memory.bandwidth", "1e9 TB/s"}}};
  const auto c = cluster_of(q);  // 50 GB/s
  const cluster_by_bandwidth clusters(q, "nics.bandwidth");
  const attention a{.heads = 8, .kv_heads = 8, .sequence = 32768, .mask = mask_kind::full};
  const auto ring = forward(c, a, "ring", 2), gather = forward(c, a, "allgather", 2);
  EXPECT_NEAR(compute_bound_above(clusters, ring).value().value() / 55.31e9, 1, 0.01);
  EXPECT_EQ(compute_bound_from(c, ring), 65536);
  EXPECT_EQ(compute_bound_from(c, gather, 1e-9), std::nullopt) << "hides nothing";
  EXPECT_EQ(compute_bound_above(clusters, gather, 1e-9), std::nullopt);
}

TEST(cluster_by_bandwidth, has_the_rates_of_the_file_that_says_so) {
  for (const std::string name : {"nd-h100-v5", "p5", "gb200-nvl72", "star"}) {
    for (const std::string key : {"nics.bandwidth", "node.bandwidth"}) {
      if (name == "star" && key == "node.bandwidth") continue;
      question q{.cluster = name};
      const auto clusters = cluster_by_bandwidth(q, key);
      set_key(q, key, "36.5 GB/s");
      const auto expected = cluster_of(q), c = clusters.at(bandwidth(36.5e9));
      ASSERT_EQ(c.network.links().size(), expected.network.links().size());
      for (link_id l = 0; l < c.network.links().size(); ++l) {
        EXPECT_NEAR(c.network.links()[l].capacity / expected.network.links()[l].capacity, 1, 1e-12)
            << name << ' ' << key << ' ' << c.network.name(l, "->");
      }
    }
  }
}

TEST(cluster_by_bandwidth, needs_a_key_of_the_file) {
  EXPECT_THROW(cluster_by_bandwidth({.cluster = "star"}, "nics.speed"), input_error);
}

// Launching an exchange takes a second, so neither a faster network nor faster kernels would help the ring. A rank of it
// computes 64 n^2 FLOP: 1.1 s at 4M tokens, 4.5 s at 8M.
TEST(explain, a_slow_host_leaves_nothing_to_catch_up_with) {
  auto c = read_cluster("star", {.nodes = 4});
  c.host = {.name = "slow", .exchange = seconds(1)};
  const attention a{.heads = 1, .kv_heads = 1, .sequence = 8192};
  const auto ring = forward(c, a, "ring", 4), gather = forward(c, a, "allgather", 4);
  const auto lacks = to_catch_up(ring, gather);
  EXPECT_EQ(lacks.behind, ring.time - gather.time);
  EXPECT_EQ(lacks.network, 0);
  EXPECT_EQ(lacks.kernels, 0);
  EXPECT_EQ(compute_bound_from(c, ring), std::int64_t{1} << 23);
}

TEST(explain, what_is_behind_can_be_caught_up_with_by_what_takes_longer) {
  prediction best, candidate;
  best.time = seconds(4);
  candidate.time = seconds(6);
  candidate.compute = seconds(2);
  candidate.exposed_communication = seconds(4);
  const auto lacks = to_catch_up(candidate, best);
  EXPECT_EQ(lacks.behind, seconds(2));
  EXPECT_EQ(lacks.network, 2);  // 4 s to 2 s
  EXPECT_EQ(lacks.kernels, 0);  // 2 s to nothing
}

struct of_a_plan : testing::Test {
  of_a_plan() {
    q.overrides.nodes = 1;
    q.sequence = 65536;
    q.heads = 8;
    q.pass = pass_kind::forward;
  }
  explanation explained(std::vector<std::string> schedules) {
    c = cluster_of(q);
    result = plan(c, plan_of(q, ranks_of(q, c), std::move(schedules)));
    return explain(q, c, result);
  }
  question q{.cluster = "dgx-h100"};
  cluster c;
  plan_result result;
};
using explain_of = of_a_plan;

TEST_F(explain_of, candidates_are_explained_in_their_order) {
  const auto e = explained({"ring", "allgather"});
  ASSERT_EQ(e.candidates.size(), result.candidates.size());
  EXPECT_EQ(e.candidates[0].lacks.behind, seconds());
  EXPECT_EQ(e.candidates[1].lacks.behind, result.candidates[1].time - result.candidates[0].time);
  EXPECT_EQ(e.bandwidth_key, "node.bandwidth");
  EXPECT_EQ(e.transport, link_kind::nvlink);
  EXPECT_EQ(e.late.chosen.launch, launch_order::compute_first);
}

TEST_F(explain_of, frameworks_say_what_they_can_run) {
  const auto e = explained({"ring"});
  const auto can = [](const std::vector<usable_by>& list, std::string_view name) {
    return std::find_if(list.begin(), list.end(), [&](const auto& f) { return f.name == name; });
  };
  EXPECT_EQ(can(e.frameworks, "megatron")->best, 0u);
  EXPECT_EQ(can(e.frameworks, "megatron")->refuses_first, "");
  EXPECT_EQ(can(e.frameworks, "magiattention")->best, std::nullopt);
  EXPECT_NE(can(e.frameworks, "magiattention")->refuses_first, "");
  EXPECT_EQ(can(e.comm_types, "p2p")->best, 0u);
  EXPECT_EQ(can(e.comm_types, "a2a")->best, std::nullopt);
}

TEST_F(explain_of, rejections_of_one_reason_stand_together) {
  const auto e = explained({"ring", "allgather"});
  ASSERT_EQ(e.rejected.size(), 2u);
  EXPECT_EQ(e.rejected[0].schedule, "allgather");
  EXPECT_EQ(e.rejected[1].schedule, "ring");
  EXPECT_EQ(e.rejected[1].reason, result.rejected[0].reason);
  EXPECT_GT(e.rejected[1].candidates.size(), 1u);
}

TEST_F(explain_of, an_explicit_graph_has_no_bandwidth_of_nics) {
  const temporary_folder folder;
  q = {.cluster = folder.write("graph.yaml",
                               "name: graph\ndevice: h100-sxm5\ngraph:\n"
                               "  vertices: [{name: a, kind: device}, {name: b, kind: device}]\n"
                               "  links: [{from: a, to: b, bandwidth: 50 GB/s, latency: 1 us, "
                               "kind: network, duplex: true}]\n"),
       .sequence = 65536};
  const auto e = explained({"ring"});
  EXPECT_EQ(e.bandwidth_key, "nics.bandwidth");
  EXPECT_EQ(e.candidates[0].faster_network, std::nullopt);
  EXPECT_NE(e.candidates[0].tokens, std::nullopt);
}

}  // namespace explain_test
}  // namespace attnsim::ask
