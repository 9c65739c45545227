#include "calibrate/sequence.hpp"

#include <gtest/gtest.h>

#include "model/config.hpp"

namespace attnsim {
namespace sequence_test {

/// Casts take no time, exchanges 2 us.
cluster pair() {
  return read_cluster(config_node::parse_text(
      "name: pair\nnodes: 1\ndevices_per_node: 2\n"
      "node: {links: nvswitch, bandwidth: 100 GB/s, latency: 0 us}\n"
      "device: {name: d, source: round numbers, peak: {half: 1000 TFLOP/s, fp32: 100 TFLOP/s}, "
      "memory: {capacity: 80 GB, bandwidth: 1e6 TB/s}, multiprocessors: 100, "
      "idle_start: {launch: 10 us, launch_communication: 50 us, next: 5 us, next_communication: 15 "
      "us, graph_launch: 20 us, gap: 4 us, gap_communication: 3 us}, "
      "transports: {nvlink: {latency: 2 us}}}\n",
      "pair.yaml"));
}

double us(sequence_kind operations, int count, sequence_start start) {
  return 1e6 *
         simulated({.operations = operations, .count = count, .start = start}, pair()).value();
}

constexpr double bytes_us = 64 / 100e3;

/// The device does what the host launches at once, and never waits for a gap.
TEST(sequence, from_idle_is_as_long_as_its_launches) {
  using enum sequence_kind;
  EXPECT_NEAR(us(casts, 4, sequence_start::idle), 10 + 3 * 5, 1e-3);
  EXPECT_NEAR(us(exchanges, 4, sequence_start::idle), 50 + 3 * 15 + 2 + bytes_us, 1e-3);
  EXPECT_NEAR(us(both, 4, sequence_start::idle), 10 + 50 + 5 + 15 + 2 + bytes_us, 1e-3);
}

TEST(sequence, launched_ahead_is_as_long_as_its_gaps) {
  using enum sequence_kind;
  EXPECT_NEAR(us(casts, 4, sequence_start::ahead), 4 * 4, 1e-3);
  EXPECT_NEAR(us(exchanges, 4, sequence_start::ahead), 4 * (2 + bytes_us), 1e-3);
  EXPECT_NEAR(us(both, 4, sequence_start::ahead), 2 * (4 + 2 + bytes_us), 1e-3);
}

/// Exchanges have gaps then, too.
TEST(sequence, as_a_graph_is_launched_once) {
  using enum sequence_kind;
  EXPECT_NEAR(us(casts, 4, sequence_start::graph), 20 + 3 * 4, 1e-3);
  EXPECT_NEAR(us(exchanges, 4, sequence_start::graph), 20 + 3 * 3 + 4 * (2 + bytes_us), 1e-3);
}

}  // namespace sequence_test
}  // namespace attnsim
