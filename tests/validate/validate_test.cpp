#include "validate/validate.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>

#include "kernels/cpu/backend.hpp"
#include "model/error.hpp"

namespace attnsim::validate {
namespace validate_test {

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
                           .repeats = {.runs = 1}});
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

/// Or longer, where the machine has others to serve.
TEST(validate, emulated_devices_take_the_predicted_time) {
  const auto on = slow_devices();
  for (const auto kind : {emulation::waits, emulation::computes_and_waits}) {
    const auto v = validate({.on = on,
                             .problem = problem,
                             .chosen = {.schedule = "ring"},
                             .ranks = 4,
                             .emulates = kind});
    for (const auto& part : {v.compute, v.total}) {
      EXPECT_GT(part.measured, 0.98 * part.predicted) << part.name;
      EXPECT_LT(part.measured, 1.5 * part.predicted) << part.name;
    }
    EXPECT_EQ(v.passes[0].computed, kind == emulation::computes_and_waits);
    EXPECT_TRUE(v.passed);
  }
}

/// Another back end than those of kernels/: a stranger of which nothing but its description is known.
TEST(validate, runs_a_back_end_that_it_has_never_seen) {
  std::atomic<int> made = 0;
  kernels::add_backend({.name = "abacus",
                        .profile_kernel = "abacus-1.0",
                        .transports = {"inprocess"},
                        .make = [&](const kernels::device_options&) {
                          ++made;
                          return kernels::cpu::make_backend();
                        }});
  const auto on = slow_devices();
  for (const auto* schedule : {"ring", "attention2d", "mesh"}) {
    const auto v = validate({.on = on,
                             .problem = problem,
                             .chosen = {.schedule = schedule},
                             .ranks = 4,
                             .pass = pass_kind::both,
                             .kernel = "abacus",
                             .repeats = {.runs = 1}});
    EXPECT_TRUE(v.passed) << schedule;
    for (const auto& p : v.passes) EXPECT_TRUE(p.numbers.passed) << schedule;
  }
  EXPECT_EQ(made, 3 * 4);
}

TEST(validate, refuses_what_it_does_not_know) {
  kernels::add_backend({.name = "loner", .transports = {"nccl"}});
  const auto on = slow_devices();
  const auto error_of = [&](const std::string& kernel, const std::string& transport,
                            launch_mode mode = launch_mode::ahead) {
    try {
      validate({.on = on,
                .problem = problem,
                .ranks = 4,
                .kernel = kernel,
                .transport = transport,
                .mode = mode});
    } catch (const input_error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  const auto usual = kernels::backends().front().name;
  EXPECT_EQ(error_of(usual, "pigeons"),
            "transport: 'pigeons': expected one of: inprocess, mpi, nccl");
  EXPECT_EQ(error_of("loner", "mpi"), "kernel: 'loner': runs with transport nccl, not mpi");
  EXPECT_EQ(error_of(usual, "inprocess", launch_mode::graph),
            "kernel: '" + usual + "': its devices have no graphs");
  EXPECT_THAT(error_of("quipu", "inprocess"),
              testing::StartsWith("kernel: 'quipu': expected one of: "));
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

}  // namespace validate_test
}  // namespace attnsim::validate
