#include "report/step_views.hpp"

#include <gmock/gmock.h>

namespace attnsim::report {
namespace {

ask::step_answer one_answer() {
  ask::step_answer a{.cluster = "c",
                     .model = "m",
                     .cut = {.tensor = 4, .data = 2},
                     .sequence = 4096,
                     .global_batch = 2,
                     .time = seconds(2),
                     .low = seconds(1),
                     .high = seconds(3)};
  a.parts[static_cast<std::size_t>(ask::step_part::attention)] = 1.5;
  a.parts[static_cast<std::size_t>(ask::step_part::data)] = 0.5;
  a.memory.activations = 1 << 30;
  a.speedup_of_attention = {1.6, 2.286, 4};
  a.warnings = {"of something"};
  return a;
}

TEST(step_views, a_page_has_a_bar_for_each_part_and_kind) {
  cluster c;
  c.device.memory = byte_count(std::int64_t{4} << 30);
  const auto page = page_of(c, one_answer());
  EXPECT_EQ(page.title, "Step of m on c");
  EXPECT_EQ(page.result, to_json(one_answer()));
  ASSERT_EQ(page.sections.size(), 2u);
  const auto& time = page.sections[0].chart["rows"];
  ASSERT_EQ(time.size(), 2u);
  EXPECT_EQ(time[0]["label"], "attention");
  EXPECT_EQ(time[0]["total"], 1.5);
  EXPECT_EQ(time[1]["label"], "data exchange");
  const auto& memory = page.sections[1].chart;
  EXPECT_EQ(memory["rows"][0]["total"], 1 << 30);
  EXPECT_EQ(memory["limit"]["value"], std::int64_t{4} << 30);
}

TEST(step_views, show_where_the_time_goes) {
  const auto text = to_table(one_answer());
  EXPECT_THAT(text,
              testing::StartsWith("m on c: tp 4 dp 2\n2 sequences of 4096 tokens, 1 micro-batches "
                                  "of 1, bf16, recompute none, shard none\n"));
  EXPECT_THAT(text, testing::HasSubstr("step               2.000 s (1.000 s to 3.000 s)\n"));
  EXPECT_THAT(text,
              testing::HasSubstr("attention twice as fast: 1.60x the step; four times: 2.29x; "
                                 "free: 4.00x\n"));
  EXPECT_THAT(text,
              testing::HasSubstr(
                  "  attention           1.500 s  75.0 %  [#######################.......]\n"));
  EXPECT_THAT(text, testing::HasSubstr("memory: 1.000 GiB on pipeline rank 0\n"));
  EXPECT_THAT(text, testing::EndsWith("warning: of something\n"));
}

TEST(step_views, of_one_device) {
  EXPECT_EQ(degrees_of({}), "one device");
}

TEST(step_views, json_has_all_figures) {
  const auto json = to_json(one_answer());
  EXPECT_EQ(json["step_time_s"], 2.0);
  EXPECT_EQ(json["degrees"]["tp"], 4);
  EXPECT_EQ(json["parts"]["attention_s"], 1.5);
  EXPECT_EQ(json["memory"]["activations"], 1 << 30);
}

TEST(step_views, csv_is_a_header_and_a_row) {
  const auto text = to_csv(one_answer());
  EXPECT_THAT(text, testing::StartsWith("schema,cluster,model,task,"));
  EXPECT_THAT(text, testing::HasSubstr("\nattnsim.step.1,c,m,train,"));
}

TEST(step_views, page_of_a_plan_ranks_its_steps) {
  const ask::step_plan plan{.candidates = {one_answer(), one_answer()},
                            .rejected = {{"out of memory", 3, "tp 1"}},
                            .considered = 5};
  cluster c;
  c.device.memory = byte_count(std::int64_t{4} << 30);
  const auto page = page_of(c, plan);
  EXPECT_EQ(page.title, "Plan of steps of m on c");
  EXPECT_EQ(page.result, to_json(plan));
  ASSERT_EQ(page.sections.size(), 4u);
  const auto& rows = page.sections[0].chart["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["label"], "#2 tp 4 dp 2");
  EXPECT_EQ(rows[1]["values"], nlohmann::ordered_json({0.0, 1.5, 0.0, 0.5, 0.0}));
  EXPECT_EQ(rows[1]["low"], 1.0);
  EXPECT_EQ(page.sections[1].title, "Where the time goes: tp 4 dp 2");
  EXPECT_EQ(page.sections[3].title, "Ruled out");
  EXPECT_THAT(page.html(), testing::HasSubstr("out of memory"));
}

TEST(step_views, of_a_plan) {
  const ask::step_plan plan{
      .candidates = {one_answer()}, .rejected = {{"out of memory", 3, "tp 1"}}, .considered = 4};
  EXPECT_THAT(to_table(plan), testing::HasSubstr("\ntp 4 dp 2         1 of 1  none       none "));
  EXPECT_THAT(to_table(plan),
              testing::EndsWith("\nruled out\n  3 of 4: out of memory, such as tp 1\n"));
  EXPECT_EQ(to_json(plan)["candidates"][0]["step_time_s"], 2.0);
  EXPECT_EQ(to_json(plan)["rejected"][0]["candidates"], 3);
  EXPECT_EQ(to_csv(plan), to_csv(one_answer()));
}

}  // namespace
}  // namespace attnsim::report
