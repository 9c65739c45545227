#include "report/explanation.hpp"

#include <gmock/gmock.h>

namespace attnsim::report {
namespace explanation_test {

using testing::HasSubstr;

plan_result two_candidates() {
  plan_result plan;
  for (const auto* name : {"mesh", "ring"}) {
    auto& p = plan.candidates.emplace_back();
    p.chosen = {.schedule = name, .rows = 4, .cols = 1};
    p.time = seconds(2);
    p.bottleneck.kind = "compute";
    p.passes.emplace_back().kernels.share = 0.5;
  }
  plan.on_fewer.push_back(plan.candidates[0]);
  plan.on_fewer.back().ranks = 1;
  return plan;
}

ask::explanation of_two() {
  ask::explanation e{.bandwidth_key = "nics.bandwidth"};
  e.candidates = {{{}, 65536, bandwidth(25e9)}, {{seconds(1), 2, 0}, {}, {}}};
  e.late.time = seconds(3);
  e.transport = link_kind::network;
  e.frameworks = {{"megatron", 1, "has no mesh"}, {"usp", {}, ""}};
  e.rejected = {
      {"ring", "runs on one column of ranks", {{.rows = 1, .cols = 4}, {.rows = 2, .cols = 2}}}};
  return e;
}

TEST(explanation, says_what_each_candidate_lacks) {
  const auto text = to_text(of_two(), two_candidates(), read_cluster("star", {.nodes = 4}));
  EXPECT_THAT(text,
              HasSubstr("#  bound by  kernels at   behind  if network faster by  or kernels by  "
                        "compute-bound from  or from nics.bandwidth\n"
                        "1  compute       50.0 %     0 ps  no                    no             "
                        "      65536 tokens              25.00 GB/s\n"
                        "2  compute       50.0 %  1.000 s  2x                    no             "
                        "                 -                       -\n"));
  EXPECT_THAT(text, HasSubstr("the other way round #1 takes 3.000 s (+50.0 %)\n"));
  EXPECT_THAT(text, HasSubstr("\nmegatron        2  has no mesh\nusp             -  can do\n"));
  EXPECT_THAT(text, HasSubstr("\nring      runs on one column of ranks  1x4, 2x2\n"));
  EXPECT_THAT(text, HasSubstr("\none rank: 2.000 s\n"));
}

TEST(explanation, settings_say_whose_they_are) {
  const emitted_settings found{.refusals = {"has no mesh"}, .lines = "--cp 4\n"};
  EXPECT_EQ(to_text(found, "megatron", two_candidates()),
            "# not #1, mesh 4x1: megatron has no mesh\n"
            "# megatron: #2 of the plan, ring 4x1, 2.000 s\n--cp 4\n");
}

}  // namespace explanation_test
}  // namespace attnsim::report
