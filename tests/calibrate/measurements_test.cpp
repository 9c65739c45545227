#include "calibrate/measurements.hpp"

#include <gmock/gmock.h>

#include "model/error.hpp"
#include "model/median.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim {
namespace measurements_test {

using testing::ElementsAre;
using testing::HasSubstr;

measurements one_of_each() {
  const kernel_point kernel{.kernel = "cudnn-9.19",
                            .pass = pass_kind::backward,
                            .mask = mask_kind::causal,
                            .batch = 2,
                            .heads = 32,
                            .kv_heads = 8,
                            .head_dim = 64,
                            .rows = 512,
                            .cols = 1024};
  const transfer_point transfer{.operation = transfer_kind::all_gather,
                                .members = 4,
                                .stride = 2,
                                .channels = 8,
                                .bytes = 4096};
  measurements all{.environment = {{"card", "NVIDIA H100"}}};
  all.points.push_back({kernel, {{"time_s", {1e-3, 2e-3}}, {"launch_s", {1e-6, 1e-6}}}});
  all.points.push_back({memory_point{"merge", 128, 4, 64}, {{"time_s", {3e-6}}}});
  all.points.push_back({transfer, {{"time_s", {4e-5}}}});
  auto square = kernel;
  square.cols = square.rows;
  all.points.push_back({overlap_point{square, transfer, launch_order::compute_first},
                        {{"time_s", {5e-3}}, {"kernel_s", {1e-3}}, {"transfer_s", {4e-3}}}});
  all.points.push_back({product_point{"attnsim-cuda", product_use::gradient_sum, 64, 128, 256},
                        {{"time_s", {6e-3}}}});
  all.points.push_back(
      {sequence_point{sequence_kind::both, 2, 16, sequence_start::graph}, {{"time_s", {7e-3}}}});
  all.points.push_back(
      {elementwise_point{"cpu", elementwise_kind::norm_gradient, 64, 128}, {{"time_s", {7e-6}}}});
  return all;
}

TEST(measurements, are_read_as_they_were_written) {
  const temporary_folder folder;
  const auto all = one_of_each();
  const auto read = read_measurements(folder.write("m.json", to_json(all)));
  EXPECT_EQ(read.environment, all.environment);
  ASSERT_EQ(read.points.size(), all.points.size());
  for (std::size_t i = 0; i < all.points.size(); ++i) {
    EXPECT_EQ(read.points[i].what, all.points[i].what) << describe(all.points[i].what);
    EXPECT_EQ(read.points[i].samples, all.points[i].samples);
  }
}

TEST(measurements, are_described_in_a_line) {
  std::vector<std::string> lines;
  for (const auto& m : one_of_each().points) lines.push_back(describe(m.what));
  const std::string kernel = "cudnn-9.19 backward causal, 32/8 heads of 64, 512 x 1024, batch 2";
  const std::string square = "cudnn-9.19 backward causal, 32/8 heads of 64, 512 x 512, batch 2";
  const std::string transfer = "all_gather of 4096 bytes, 4 ranks 2 apart, 8 channels";
  EXPECT_THAT(lines, ElementsAre("kernel " + kernel, "merge of 128 tokens, 4 heads of 64", transfer,
                                 square + " beside " + transfer + ", compute-first",
                                 "attnsim-cuda product gradient-sum, 64 x 128 x 256",
                                 "16 casts and exchanges in a row, 2 ranks, graph",
                                 "cpu norm_gradient, 64 x 128"));
}

TEST(measurements, have_medians) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(quantile({4, 1, 3, 2, 5}, 0.25), 2);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2, 5}, 0.9), 4.6);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_EQ(quantile({7}, 0.95), 7);
  const measurement m{memory_point{}, {{"time_s", {3, 1, 2}}, {"launch_s", {5}}}};
  EXPECT_EQ(m.median(), 2);
  EXPECT_EQ(m.median("launch_s"), 5);
}

/// fp32 sum read and written, bf16 part read: 10 bytes an element.
TEST(measurements, count_memory_traffic) {
  EXPECT_EQ(memory_traffic({"merge", 100, 2, 64}), 100 * 2 * 64 * 10);
  EXPECT_EQ(memory_traffic({"accumulate", 100, 2, 64}), 100 * 2 * 64 * 10);
  EXPECT_EQ(memory_traffic({"cast", 100, 2, 64}), 100 * 2 * 64 * 6);
  EXPECT_EQ(memory_traffic({"delta", 100, 2, 64}), 100 * 2 * 64 * 4);
}

TEST(measurements, refuse_what_is_wrong) {
  const temporary_folder folder;
  const auto good = to_json(one_of_each());
  const auto error_of = [&](std::string from, const std::string& to) {
    auto text = good;
    text.replace(text.find(from), from.size(), to);
    const auto path = folder.write("m.json", text);
    try {
      read_measurements(path);
    } catch (const input_error& e) {
      return std::string(e.what()).substr(path.size());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error_of("measurements.2", "measurements.3"),
            ": schema: 'attnsim.measurements.3': expected attnsim.measurements.2");
  EXPECT_EQ(
      error_of("measurements.2", "measurements.1"),
      ": schema: 'attnsim.measurements.1': expected attnsim.measurements.2, where kernels have "
      "a device profile's names (attnsim-cuda, cudnn-9.19) and processors are channels");
  EXPECT_EQ(error_of("\"kind\":\"memory\"", "\"kind\":\"disk\""),
            ": points[1]: kind: 'disk': expected one of: kernel, memory, transfer, overlap, "
            "matmul, elementwise, sequence");
  EXPECT_EQ(error_of("\"operations\":\"both\"", "\"operations\":\"all\""),
            ": points[5]: operations: 'all': expected one of: casts, exchanges, both");
  EXPECT_EQ(error_of("\"start\":\"graph\"", "\"start\":\"now\""),
            ": points[5]: start: 'now': expected one of: idle, graph, ahead");
  EXPECT_EQ(error_of("\"rows\":512", "\"rows\":0"),
            ": points[0]: rows: '0': expected a whole number of at least 1");
  EXPECT_EQ(error_of("\"rows\":512,", ""), ": points[0]: rows: missing");
  EXPECT_EQ(error_of("all_gather", "scatter"),
            ": points[2]: operation: 'scatter': expected one of: send, exchange, all_gather, "
            "reduce_scatter, all_to_all, all_reduce");
  EXPECT_EQ(error_of("\"time_s\":[0.001,", "\"time_s\":[-1,"),
            ": points[0]: samples: time_s: '-1.0': expected a positive time");
  EXPECT_EQ(error_of("\"rows\":512,\"cols\":512}", "\"rows\":512,\"cols\":256}"),
            ": points[3]: kernel: cols: '256': expected as many as rows, 512");
  EXPECT_EQ(error_of("\"transfer\":{\"operation\":\"all_gather\"",
                     "\"transfer\":{\"operation\":\"send\""),
            ": points[3]: transfer: operation: 'send': expected one of: exchange, all_gather, "
            "reduce_scatter");
  EXPECT_THAT(error_of("]}\n", ""), HasSubstr("expected JSON"));
  EXPECT_EQ(error_of("\"rows\":512", "\"rows\":8E8881"), ": expected numbers that a double holds");
}

TEST(has_few_rows, forward_below_64_and_16_times_as_many_keys) {
  EXPECT_TRUE(has_few_rows({.rows = 63, .cols = 1008}));
  EXPECT_FALSE(has_few_rows({.rows = 63, .cols = 1007}));
  EXPECT_FALSE(has_few_rows({.rows = 64, .cols = 65536}));
  EXPECT_FALSE(has_few_rows({.pass = pass_kind::backward, .rows = 1, .cols = 65536}));
}

TEST(ranks_of, reach_as_far_as_a_group) {
  EXPECT_EQ(ranks_of(kernel_point{}), 1);
  EXPECT_EQ(ranks_of(transfer_point{.members = 3, .stride = 4}), 9);
  EXPECT_EQ(ranks_of(overlap_point{.transfer = {.members = 2}}), 2);
  EXPECT_EQ(ranks_of(sequence_point{.members = 2}), 2);
}

TEST(part_of, by_what_is_moved) {
  EXPECT_EQ(part_of(kernel_point{}), "kernels");
  EXPECT_EQ(part_of(memory_point{}), "memory");
  EXPECT_EQ(part_of(product_point{}), "products");
  EXPECT_EQ(part_of(elementwise_point{}), "elementwise");
  EXPECT_EQ(part_of(sequence_point{}), "launches");
  EXPECT_EQ(part_of(transfer_point{.operation = transfer_kind::all_to_all}), "transfers");
  EXPECT_EQ(part_of(transfer_point{.operation = transfer_kind::all_reduce}), "collectives");
  EXPECT_EQ(part_of(overlap_point{}), "overlap");
}

TEST(measurements, count_what_elementwise_operations_read_and_write) {
  const auto bytes = [](elementwise_kind kind) {
    return elementwise_traffic({.operation = kind, .rows = 2, .width = 5});
  };
  EXPECT_EQ(bytes(elementwise_kind::norm), 80);           // two in, two out
  EXPECT_EQ(bytes(elementwise_kind::norm_gradient), 80);  // three in, one out
  EXPECT_EQ(bytes(elementwise_kind::rotation), 40);
  EXPECT_EQ(bytes(elementwise_kind::gate), 60);
  EXPECT_EQ(bytes(elementwise_kind::gate_gradient), 100);
  EXPECT_EQ(bytes(elementwise_kind::cast), 60);
}

TEST(measurements, of_elementwise_operations_without_a_name_are_refused) {
  auto all = one_of_each();
  std::get<elementwise_point>(all.points.back().what).operation = elementwise_kind::plain;
  EXPECT_ERROR(read_measurements("m.json", to_json(all)), input_error,
               "m.json: points[6]: operation: 'plain': expected an operation that has a name of "
               "its own");
}

}  // namespace measurements_test
}  // namespace attnsim
