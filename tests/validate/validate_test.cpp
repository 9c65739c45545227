#include "validate/validate.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "model/error.hpp"

namespace attnsim::validate {
namespace {

/// A block takes some 80 ms, messages next to nothing.
cluster slow_devices() {
  return read_cluster(config_node::parse_text(
      "name: slow\n"
      "device: {name: slow, source: round numbers, peak: {half: 0.25 GFLOP/s, fp32: 0.25 GFLOP/s}, "
      "memory: {capacity: 8 GiB, bandwidth: 1 GB/s}, multiprocessors: 1}\n"
      "nodes: 4\ndevices_per_node: 1\nnode: {links: none}\n"
      "nics: {per_node: 1, bandwidth: 50 GB/s, latency: 1 us}\nfabric: {kind: star}\n",
      "slow.yaml"));
}

const attention problem{
    .heads = 4, .kv_heads = 2, .head_dim = 32, .sequence = 1024, .mask = mask_kind::causal};

TEST(validate, passes_and_fills_every_part) {
  const auto on = slow_devices();
  const auto v = validate({.on = on,
                           .problem = problem,
                           .chosen = {.schedule = "attention2d"},
                           .ranks = 4,
                           .pass = pass_kind::both,
                           .repeats = 1});
  EXPECT_TRUE(v.passed);
  ASSERT_EQ(v.passes.size(), 2u);
  for (const auto& p : v.passes) {
    EXPECT_TRUE(p.numbers.passed);
    EXPECT_EQ(p.predicted_peak.value(), p.measured_peak.value());
    EXPECT_EQ(p.measured.ranks.size(), 4u);
    for (const auto& part : p.parts) EXPECT_TRUE(std::isfinite(part.error())) << part.name;
  }
  EXPECT_GT(v.total.measured, v.compute.measured);
}

TEST(validate, emulated_devices_take_the_predicted_time) {
  const auto on = slow_devices();
  for (const auto kind : {emulation::waits, emulation::computes_and_waits}) {
    const auto v = validate({.on = on,
                             .problem = problem,
                             .chosen = {.schedule = "ring"},
                             .ranks = 4,
                             .emulates = kind});
    EXPECT_LT(std::abs(v.compute.error()), 0.05) << v.compute.measured.value();
    EXPECT_LT(std::abs(v.total.error()), 0.1) << v.total.measured.value();
    EXPECT_EQ(v.passes[0].computed, kind == emulation::computes_and_waits);
    EXPECT_TRUE(v.passed);
  }
}

TEST(validate, refuses_what_it_does_not_know) {
  const auto on = slow_devices();
  EXPECT_THROW(validate({.on = on, .problem = problem, .ranks = 4, .transport = "pigeons"}),
               input_error);
}

/// A sample of the rows is checked, and d_o is zero elsewhere.
TEST(validate, checks_a_sample_of_what_is_large) {
  const auto on = slow_devices();
  auto large = problem;
  large.sequence = 16384;
  large.head_dim = 8;
  const oracle sample(large, 1e7);
  EXPECT_TRUE(sample.samples());
  EXPECT_THROW(sample.make(tensor::o, {{0, 4, 1}}, data_type::bf16), std::logic_error);
  const auto d_o = sample.make(tensor::d_o, {{0, 1, 1}}, data_type::bf16);
  for (const auto byte : d_o.data) EXPECT_EQ(byte, std::byte{0});
}

}  // namespace
}  // namespace attnsim::validate
