#include "validate/measure.hpp"

#include <gmock/gmock.h>

#include "kernels/cpu/backend.hpp"
#include "validate/transports/inprocess.hpp"

namespace attnsim::validate {
namespace measure_test {

using testing::ElementsAre;
using testing::Key;
using testing::SizeIs;

const kernel_point small_kernel{
    .kernel = "cpu", .heads = 2, .kv_heads = 1, .head_dim = 8, .rows = 8, .cols = 8};

/// The points as rank 0 leaves them.
std::vector<measurement> measured(
    int ranks, const std::vector<measured_point>& points, std::size_t rounds,
    std::function<bool()> stops = [] { return false; }) {
  std::vector<measurement> result;
  run_in_process(ranks, std::chrono::seconds(20), [&](transport& t) {
    std::vector<measurement> own;
    for (const auto& p : points) own.push_back({.what = p});
    measure({.points = own,
             .rounds = rounds,
             .device = [](const std::string&) { return kernels::cpu::make_backend(); },
             .transfer_device = "cpu",
             .stops = stops},
            t);
    if (t.rank() == 0) result = own;
  });
  return result;
}

TEST(measure, takes_as_many_samples_of_every_kind_as_asked_for) {
  std::vector<measured_point> points{small_kernel};
  points.push_back(memory_point{"delta", 8, 2, 8});
  points.push_back(product_point{"cpu", product_use::gradient_sum, 8, 16, 24});
  for (const auto kind :
       {elementwise_kind::norm, elementwise_kind::norm_gradient, elementwise_kind::rotation,
        elementwise_kind::gate, elementwise_kind::gate_gradient, elementwise_kind::cast})
    points.push_back(elementwise_point{"cpu", kind, 8, 32});
  for (const auto kind :
       {transfer_kind::send, transfer_kind::exchange, transfer_kind::all_gather,
        transfer_kind::reduce_scatter, transfer_kind::all_to_all, transfer_kind::all_reduce}) {
    points.push_back(transfer_point{.operation = kind, .members = 3, .bytes = 256});
  }
  points.push_back(overlap_point{
      small_kernel, {.operation = transfer_kind::exchange, .members = 3, .bytes = 256}});
  points.push_back(sequence_point{.operations = sequence_kind::both, .members = 3, .count = 3});
  for (const auto& m : measured(3, points, 2)) {
    EXPECT_EQ(m.rounds(), 2u) << describe(m.what);
    EXPECT_THAT(m.samples.at("time_s"), SizeIs(2));
    EXPECT_GT(m.median(), 0) << describe(m.what);
  }
}

TEST(measure, tells_kernel_and_transfer_of_an_overlap_apart) {
  const overlap_point both{small_kernel,
                           {.operation = transfer_kind::exchange, .members = 2, .bytes = 256},
                           launch_order::compute_first};
  const auto m = measured(2, {both}, 3).at(0);
  EXPECT_THAT(m.samples, ElementsAre(Key("kernel_s"), Key("time_s"), Key("transfer_s")));
}

/// Of four ranks two apart, {0, 2} and {1, 3} meet.
TEST(measure, runs_all_groups_at_once) {
  const transfer_point columns{
      .operation = transfer_kind::all_gather, .members = 2, .stride = 2, .bytes = 64};
  EXPECT_EQ(measured(4, {columns}, 1).at(0).rounds(), 1u);
}

TEST(measure, stops_between_samples_on_all_ranks) {
  int asked = 0;
  const auto m =
      measured(2, {small_kernel, memory_point{"cast", 8, 2, 8}}, 5, [&] { return ++asked > 3; });
  EXPECT_EQ(m[0].rounds() + m[1].rounds(), 3u);
}

TEST(measure, goes_on_with_what_is_there) {
  std::vector<measurement> points{{small_kernel, {{"time_s", {1, 2}}, {"launch_s", {1, 2}}}}};
  run_in_process(1, std::chrono::seconds(20), [&](transport& t) {
    measure({.points = points,
             .rounds = 3,
             .device = [](const std::string&) { return kernels::cpu::make_backend(); },
             .transfer_device = "cpu"},
            t);
  });
  EXPECT_EQ(points[0].rounds(), 3u);
}

/// kv_heads that do not divide heads are refused by the kernel.
TEST(measure, leaves_out_what_a_device_does_not_do) {
  auto wrong = small_kernel;
  wrong.heads = 3;
  wrong.kv_heads = 2;
  const auto m = measured(2, {wrong, small_kernel}, 2);
  EXPECT_EQ(m[0].rounds(), 0u);
  EXPECT_EQ(m[1].rounds(), 2u);
}

}  // namespace measure_test
}  // namespace attnsim::validate
