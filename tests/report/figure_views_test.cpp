#include "report/figure_views.hpp"

#include <gtest/gtest.h>

#include "report/csv.hpp"
#include "report/results.hpp"

namespace attnsim::report {
namespace figure_views_test {

/// A different value for every figure.
prediction answer() {
  prediction p{.cluster = "p5", .ranks = 16, .by = prediction_method::analytic};
  p.chosen = {.schedule = "attention2d", .rows = 4, .cols = 2, .tokens = token_layout::zigzag};
  p.chosen.ulysses = 2;
  p.chosen.tensor_parallel = 3;
  p.chosen.placement = "tile-in-node";
  p.chosen.order = kv_order::transposed;
  p.data_parallel = 5;
  p.time = seconds(2);
  p.low = seconds(1.5);
  p.high = seconds(2.5);
  p.compute = seconds(1.25);
  p.exposed_communication = seconds(0.75);
  p.host = seconds(0.5);
  p.most_bytes_sent = byte_count(1 << 20);
  p.mean_bytes_sent = 1000.5;
  p.peak_memory = byte_count(1 << 30);
  p.rate_per_device = flop_rate(3e12);
  p.passes.push_back({.memory = {.cache = byte_count(3072)}});
  p.bottleneck = {"nvlink", "a->b", 0.5};
  p.warnings = {"one", "two"};
  p.problem = {
      .batch = 2, .heads = 8, .kv_heads = 4, .sequence = 160, .window = 64, .documents = {96, 64}};
  p.pass = pass_kind::forward;
  p.limit = {seconds(0.5), "work"};
  return p;
}

/// The contract of attnsim predict --format json: keys, their order and their values.
TEST(figure_views, json_of_a_prediction) {
  EXPECT_EQ(
      to_json(answer()).dump(),
      R"({"schema":"attnsim.prediction.1","cluster":"p5","ranks":16,"schedule":"attention2d",)"
      R"("grid":[4,2],"ulysses":2,"tp":3,"dp":5,"tokens":"zigzag","placement":"tile-in-node",)"
      R"("kv_order":"transposed","levels":"","keys_sent":"expanded","parts":1,"shares":[],"by":"analytic","time_s":2.0,"time_interval_s":[1.5,2.5],)"
      R"("compute_s":1.25,"exposed_communication_s":0.75,"host_s":0.5,)"
      R"("bytes_sent_per_rank":{"max":1048576,"mean":1000.5},"peak_memory_bytes":1073741824,)"
      R"("cache_bytes":3072,"tokens_per_second":160.0,"time_per_token_s":0.0125,)"
      R"("tflops_per_device":3.0,"tflop_per_device":6.0,)"
      R"("bottleneck":{"kind":"nvlink","name":"a->b","share":0.5},)"
      R"("limit_s":0.5,"times_limit":4.0,"limit_bound_by":"work","feasible":true,)"
      R"("warnings":["one","two"],)"
      R"("problem":{"seq":160,"padding":0,"prefix":0,"cache_lengths":[],"kv_seq":0,"batch":2,"heads":8,"kv_heads":4,)"
      R"("head_dim":128,"v_head_dim":128,"mask":"causal","window":64,"keep_first":0,"latent":false,)"
      R"("sinks":false,"documents":[96,64],"dtype":"bf16","wire_dtype":"bf16",)"
      R"("pass":"forward"}})");
}

TEST(figure_views, csv_has_a_column_a_value_and_no_lists) {
  EXPECT_EQ(to_csv({answer(), answer()}),
            "schema,cluster,ranks,schedule,grid.0,grid.1,ulysses,tp,dp,tokens,placement,kv_order,"
            "levels,keys_sent,parts,by,time_s,time_interval_s.0,time_interval_s.1,compute_s,"
            "exposed_communication_"
            "s,"
            "host_s,bytes_sent_per_rank.max,bytes_sent_per_rank.mean,peak_memory_bytes,"
            "cache_bytes,tokens_per_second,time_per_token_s,"
            "tflops_per_device,tflop_per_device,bottleneck.kind,bottleneck.name,bottleneck.share,"
            "limit_s,times_limit,limit_bound_by,feasible\n"
            "attnsim.prediction.1,p5,16,attention2d,4,2,2,3,5,zigzag,tile-in-node,transposed,"
            ",expanded,1,analytic,2.0,1.5,2.5,1.25,0.75,0.5,1048576,1000.5,1073741824,3072,160.0,0."
            "0125,3.0,6.0,"
            "nvlink,a->b,0.5,0.5,4.0,work,"
            "true\n"
            "attnsim.prediction.1,p5,16,attention2d,4,2,2,3,5,zigzag,tile-in-node,transposed,"
            ",expanded,1,analytic,2.0,1.5,2.5,1.25,0.75,0.5,1048576,1000.5,1073741824,3072,160.0,0."
            "0125,3.0,6.0,"
            "nvlink,a->b,0.5,0.5,4.0,work,"
            "true\n");
}

TEST(figure_views, csv_quotes_text) {
  auto p = answer();
  p.cluster = "mine, \"new\"";
  EXPECT_NE(to_csv({p}).find("\nattnsim.prediction.1,\"mine, \"\"new\"\"\",16,"),
            std::string::npos);
}

TEST(figure_views, ranking_has_them_with_units) {
  EXPECT_EQ(ranking_of({answer()}).str(),
            "#  schedule                          grid  tokens  placement        time  compute   "
            "exposed    rate/device  sent/rank     memory  x limit  bound by\n"
            "1  attention2d (transposed)  4x2 U2 T3 D5  zigzag  tile-in-node  2.000 s  1.250 s  "
            "750.0 ms  3.000 TFLOP/s  1.000 MiB  1.000 GiB     4.00  nvlink a->b (50 %), by closed "
            "form\n");
}

TEST(figure_views, text_is_by_unit) {
  EXPECT_EQ(text_of(0.5, "s"), "500.0 ms");
  EXPECT_EQ(text_of(std::int64_t{3} << 30, "bytes"), "3.000 GiB");
  EXPECT_EQ(text_of(std::int64_t{7}, ""), "7");
  EXPECT_EQ(text_of(602.34, "TFLOP/s"), "602.3 TFLOP/s");
  EXPECT_EQ(text_of(0.51239, ""), "0.5124");
  EXPECT_EQ(text_of(true, ""), "yes");
  EXPECT_EQ(text_of(std::string("ring"), ""), "ring");
  EXPECT_EQ(text_of(ask::number_pair(1, 2), "s"), "1.000 s to 2.000 s");
  EXPECT_EQ(text_of(std::vector<ask::part>{{"max", std::int64_t{1024}}, {"mean", 1.0}}, "bytes"),
            "1.000 KiB");
  EXPECT_EQ(text_of(std::vector<std::string>{"one", "two"}, ""), "one; two");
}

TEST(figure_views, reference_says_type_and_unit) {
  const auto rows = reference_of_figures<prediction>();
  for (const auto* row : {"| `ranks` | whole number | devices that take part |\n",
                          "| `grid` | [whole number, whole number] | rows and columns of ranks |\n",
                          "| `host_s` | number, in s | ",
                          "| `bytes_sent_per_rank` | {max: whole number, mean: number}, in bytes |",
                          "| `feasible` | true or false | ", "| `warnings` | list of texts | "})
    EXPECT_NE(rows.find(row), std::string::npos) << row;
}

}  // namespace figure_views_test
}  // namespace attnsim::report
