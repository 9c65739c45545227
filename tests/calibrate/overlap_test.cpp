#include "calibrate/overlap.hpp"

#include <gmock/gmock.h>

#include "model/config.hpp"
#include "model/error.hpp"

namespace attnsim {
namespace overlap_test {

/// Two devices, of 1e15 FLOP/s each way of counting, whose transfers take bytes / 100 GB/s. The host takes 10 us to launch
/// a kernel, 50 us a transfer.
cluster pair_of(const std::string& nvlink) {
  return read_cluster(config_node::parse_text(
      "name: pair\nnodes: 1\ndevices_per_node: 2\n"
      "node: {links: nvswitch, bandwidth: 100 GB/s, latency: 0 us}\n"
      "device: {name: d, source: round numbers, peak: {half: 1000 TFLOP/s, fp32: 100 TFLOP/s}, "
      "memory: {capacity: 80 GB, bandwidth: 1e6 TB/s}, multiprocessors: 100, "
      "idle_start: {launch: 10 us, launch_communication: 50 us}, transports: {nvlink: " +
          nvlink + "}}\n",
      "pair.yaml"));
}

/// 4 x 128 x 32 x 2500 x 2500 = 1.024e11 operations: 102.4 us.
overlap_point overlap(transfer_kind operation, std::int64_t bytes, launch_order order) {
  return {.kernel = {.heads = 32, .kv_heads = 32, .rows = 2500, .cols = 2500},
          .transfer = {.operation = operation, .bytes = bytes},
          .order = order};
}

/// Without the launches, of which the samples have their own.
void expect(const overlap_times& t, double total_us, double kernel_us, double transfer_us) {
  EXPECT_NEAR(t.total.value() * 1e6, total_us, 1e-3);
  EXPECT_NEAR(t.kernel.value() * 1e6, 10 + kernel_us, 1e-3);
  EXPECT_NEAR(t.transfer.value() * 1e6, 50 + transfer_us, 1e-3);
}

constexpr auto first = launch_order::communication_first, second = launch_order::compute_first;

/// Without channels neither disturbs the other: 3 MB take 30 us from the fiftieth, the kernel begins at the sixtieth.
TEST(overlap, of_copy_engines_disturbs_nobody) {
  const auto c = pair_of("{channels: 0, slowdown: 2}");
  expect(simulated(overlap(transfer_kind::exchange, 3'000'000, first), c), 60 + 102.4, 102.4, 30);
  expect(simulated(overlap(transfer_kind::exchange, 3'000'000, second), c), 10 + 102.4, 102.4, 30);
}

/// Twice as slow for the 20 us that both run, so 10 us more. Launched second, the transfer waits for the kernel's end, from
/// its launch in 60 us on.
TEST(overlap, with_channels_slows_the_kernel_or_waits_for_it) {
  const auto c = pair_of("{channels: 8, slowdown: 2}");
  expect(simulated(overlap(transfer_kind::exchange, 3'000'000, first), c), 60 + 112.4, 112.4, 30);
  expect(simulated(overlap(transfer_kind::exchange, 3'000'000, second), c), 112.4 + 30, 102.4,
         112.4 - 60 + 30);
}

/// A member sends the others' slots but its own: 3 MB among two as well.
TEST(overlap, collectives_move_what_ranks_send) {
  const auto c = pair_of("{channels: 8, slowdown: 2}");
  for (const auto kind : {transfer_kind::all_gather, transfer_kind::reduce_scatter})
    expect(simulated(overlap(kind, 3'000'000, first), c), 60 + 112.4, 112.4, 30);
}

TEST(overlap, needs_the_devices_of_its_members) {
  auto p = overlap(transfer_kind::exchange, 1000, first);
  p.transfer.members = 4;
  EXPECT_THROW(simulated(p, pair_of("{channels: 8}")), input_error);
}

}  // namespace overlap_test
}  // namespace attnsim
