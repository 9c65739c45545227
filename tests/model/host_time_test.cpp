#include "model/cost/host_time.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ask/predict.hpp"
#include "model/median.hpp"
#include "model/schedule/framework_profile.hpp"

namespace attnsim {
namespace host_time_test {

/// Each call's time in a digit of its own, in ns: attention 1, backward 10, merge 100, ...
cluster digits(int devices) {
  auto c = read_cluster("star", {.nodes = devices});
  c.host = {.name = "digits",
            .attention = seconds(1e-9),
            .attention_backward = seconds(1e-8),
            .merge = seconds(1e-7),
            .add = seconds(1e-6),
            .copy = seconds(1e-5),
            .cast = seconds(10),
            .exchange = seconds(1e-4),
            .exchanged_tensor = seconds(1e-3),
            .all_gather = seconds(1e-2),
            .reduce_scatter = seconds(1e-1),
            .all_to_all = seconds(1)};
  return c;
}

attention layer(int ranks, mask_kind mask = mask_kind::full) {
  return {.heads = 8, .kv_heads = 8, .sequence = 1024 * ranks, .mask = mask};
}

double launches(const strategy& s, int ranks, pass_kind pass, mask_kind mask = mask_kind::full) {
  const auto c = digits(ranks);
  const placed_schedule i(c, layer(ranks, mask), s, pass);
  return host_time(i).value();
}

strategy ring_of(int ranks, merge_kind merges = merge_kind::unfused) {
  return {.rows = ranks, .cols = 1, .tokens = token_layout::contiguous, .merges = merges};
}

// Three steps: K and V move twice, three kernels, the later two merged into the first, which is then cast to bf16. Where a
// framework merges, the first is bf16, too, and cast to fp32.
TEST(host_time, ring_forward) {
  const double calls = 2 * (1e-4 + 2e-3) + 3e-9 + 10;
  EXPECT_NEAR(launches(ring_of(3), 3, pass_kind::forward), calls + 10 + 2e-7, 1e-12);
  EXPECT_NEAR(launches(ring_of(3, merge_kind::fused), 3, pass_kind::forward), calls + 2e-6, 1e-12);
}

TEST(host_time, tensors_that_a_framework_joins_are_one_message) {
  auto s = ring_of(3);
  s.copies.joined = framework_copies::joining::first;
  const double copies = 2e-5;  // of K and V
  EXPECT_NEAR(launches(s, 3, pass_kind::forward), 2 * (1e-4 + 1e-3) + 3e-9 + 20 + 2e-7 + copies,
              1e-12);
}

// K and V move twice, their gradients three times. Of three kernels the first's dQ is cast to fp32, the later two's added;
// the later two's dK and dV are added to those that arrive. At the end dQ is cast, dK and dV are copied.
TEST(host_time, ring_backward) {
  EXPECT_NEAR(launches(ring_of(3), 3, pass_kind::backward),
              5 * (1e-4 + 2e-3) + 3e-8 + 2 * 10 + 2 * 1e-5 + (2 + 4) * 1e-6, 1e-12);
}

// Causal, contiguous: rank r sees r + 1 blocks, the last one all.
TEST(host_time, is_that_of_the_rank_with_most_calls) {
  EXPECT_NEAR(launches(ring_of(3), 3, pass_kind::forward, mask_kind::causal),
              launches(ring_of(3), 3, pass_kind::forward), 1e-12);
  const auto c = digits(3);
  const placed_schedule i(c, layer(3, mask_kind::causal), ring_of(3), pass_kind::forward);
  EXPECT_NEAR((host_time(i, 2) - host_time(i, 0)).value(), 2 * (1e-9 + 1e-7), 1e-12);
}

// Q, K and V copied and exchanged, one kernel, its O exchanged and copied.
TEST(host_time, ulysses_forward) {
  const strategy s{.schedule = "ulysses",
                   .rows = 1,
                   .cols = 1,
                   .ulysses = 4,
                   .tokens = token_layout::contiguous};
  EXPECT_NEAR(launches(s, 4, pass_kind::forward), 4 * (1 + 1e-5) + 1e-9, 1e-12);
}

// K and V gathered, one kernel; backward gathers them again, reduces dK and dV, and copies these to their place.
TEST(host_time, allgather) {
  const strategy s{
      .schedule = "allgather", .rows = 4, .cols = 1, .tokens = token_layout::contiguous};
  EXPECT_NEAR(launches(s, 4, pass_kind::forward), 2e-2 + 1e-9, 1e-12);
  EXPECT_NEAR(launches(s, 4, pass_kind::backward), 2e-2 + 2e-1 + 1e-8 + 2e-5, 1e-12);
}

TEST(host_time, grows_with_the_slowdown_of_the_host) {
  auto c = digits(3);
  c.host.slowdown = 2;
  const placed_schedule i(c, layer(3), ring_of(3), pass_kind::forward);
  EXPECT_NEAR(host_time(i).value(), 2 * launches(ring_of(3), 3, pass_kind::forward), 1e-12);
}

TEST(host_time, is_nothing_without_a_profile_or_peers) {
  EXPECT_NEAR(launches(ring_of(1), 1, pass_kind::forward), 1e-9, 1e-12);
  const auto c = read_cluster("star", {.nodes = 4});
  EXPECT_EQ(host_time(placed_schedule(c, layer(4), ring_of(4), pass_kind::forward)), seconds());
}

// Whole layers on two H200, timed after the calls that the profile holds. The host's own speed changed meanwhile: the same
// layer took up to 1.7 times as long from one round to the next.
class measured_layers : public testing::Test {
 protected:
  static prediction predicted(bool ring, int heads, int tokens) {
    const auto c = read_cluster("dgx-h100", {.device = "h200-sxm5", .host = "pytorch", .nodes = 1});
    const attention a{
        .heads = heads, .kv_heads = heads, .sequence = 2 * tokens, .mask = mask_kind::full};
    const strategy ulysses{.schedule = "ulysses",
                           .rows = 1,
                           .cols = 1,
                           .ulysses = 2,
                           .tokens = token_layout::contiguous,
                           .copies = read_framework_file("usp").copies};
    auto how = ring ? ring_of(2) : ulysses;
    how.kernel = "fa2-torch";
    return predict(c, a, how, 2, pass_kind::forward);
  }

  static double median(bool ring, int heads, int tokens) {
    const auto all =
        config_node::load("reproduce/measured/h200/calls_pytorch.json").at("seconds").at("layer");
    std::vector<double> samples;
    const auto name = fmt::format("{}_{}_{}", ring ? "ring" : "ulysses", heads, tokens);
    for (const auto& s : all.at(name).items()) samples.push_back(s.as<double>());
    std::sort(samples.begin(), samples.end());
    return samples.at(samples.size() / 2);
  }
};

/// Of |predicted / measured - 1|, over all layers.
TEST_F(measured_layers, take_as_long_as_calls_that_start_when_they_are_launched) {
  std::vector<double> errors, of_the_longer;
  for (const bool ring : {true, false}) {
    for (const int heads : {8, 32}) {
      for (const int tokens : {512, 1024, 2048, 4096, 8192}) {
        SCOPED_TRACE(fmt::format("ring {} heads {} tokens {}", ring, heads, tokens));
        const auto p = predicted(ring, heads, tokens);
        const double time = median(ring, heads, tokens);
        const auto device = p.compute + p.exposed_communication;
        EXPECT_GT(p.time, std::max(p.host, device));
        EXPECT_GT(time / p.time.value(), 0.6);
        EXPECT_LT(time / p.time.value(), 2.4);
        errors.push_back(std::abs(p.time.value() / time - 1));
        of_the_longer.push_back(std::abs(std::max(p.host, device).value() / time - 1));
      }
    }
  }
  const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
  EXPECT_LT(sum / static_cast<double>(errors.size()), 0.19);
  EXPECT_LT(attnsim::median(errors), 0.11);
  EXPECT_GT(attnsim::median(of_the_longer),  // of the device's time and the host's
            attnsim::median(errors));
}

TEST_F(measured_layers, that_are_long_are_bound_by_the_device) {
  for (const bool ring : {true, false}) {
    EXPECT_EQ(predicted(ring, 32, 4096).bottleneck.kind, "compute");
    EXPECT_EQ(predicted(ring, 8, 8192).bottleneck.kind, "compute");
  }
}

// A ring of two forward: exchange, kernel, kernel, copy.
TEST(idle_launch_times, first_operations_take_longer) {
  auto c = digits(2);
  c.device.idle_start = {.launch = seconds(1),
                         .launch_communication = seconds(10),
                         .next = seconds(100),
                         .next_communication = seconds(1000),
                         .graph_launch = seconds(7)};
  const auto times = [&](run_start start) {
    auto s = ring_of(2);
    s.start = start;
    return idle_launch_times(placed_schedule(c, layer(2), s, pass_kind::forward), 0);
  };
  EXPECT_EQ(times(run_start::in_sequence), std::vector<seconds>());
  EXPECT_EQ(times(run_start::idle),
            (std::vector{seconds(10), seconds(11), seconds(111), seconds(211)}));
  EXPECT_EQ(times(run_start::idle_graph), std::vector(4, seconds(7)));
}

// The second kernel merges, the copy is of one tensor. A kernel whose calls were measured takes what they do.
TEST(idle_launch_times, grow_with_the_calls_of_an_operation) {
  auto c = digits(2);
  c.device.idle_start = {.launch = seconds(10), .next = seconds(10), .call = seconds(2)};
  auto s = ring_of(2);
  s.start = run_start::idle;
  const placed_schedule i(c, layer(2), s, pass_kind::forward);
  const auto calls = [&](std::size_t op) { return i.costs().memory(op, 0).count; };
  const auto by_calls = idle_launch_times(i, 0);
  EXPECT_EQ(by_calls[1], seconds(10 + (1 + calls(1) - 1) * 2));
  EXPECT_EQ(by_calls[2] - by_calls[1], seconds(10 + (1 + calls(2) - 1) * 2));
  EXPECT_EQ(by_calls[3] - by_calls[2], seconds(10 + (calls(3) - 1) * 2));
  c.device.kernels.push_back({.name = "measured", .host = {.forward = seconds(5)}});
  s.kernel = "measured";
  const placed_schedule measured(c, layer(2), s, pass_kind::forward);
  EXPECT_EQ(idle_launch_times(measured, 0)[1], seconds(10 + (calls(1) - 1) * 2 + 5));
}

TEST(wake_before, the_first_communication_of_a_run_from_idle_alone) {
  auto c = digits(2);
  for (auto& t : c.device.transports) t.wake = seconds(3);
  auto s = ring_of(2);
  const auto wake = [&](std::size_t op) {
    return wake_before(placed_schedule(c, layer(2), s, pass_kind::forward), op);
  };
  EXPECT_EQ(wake(0), seconds());
  for (const auto start : {run_start::idle, run_start::idle_graph}) {
    s.start = start;
    EXPECT_EQ(wake(0), seconds(3));
    EXPECT_EQ(wake(1), seconds());
  }
}

TEST(gap_before, only_where_a_run_starts_idle) {
  auto c = digits(2);
  c.device.idle_start = {.gap = seconds(4), .gap_communication = seconds(3)};
  auto s = ring_of(2);
  const auto gap = [&](std::size_t op) {
    return gap_before(placed_schedule(c, layer(2), s, pass_kind::forward), op);
  };
  EXPECT_EQ(gap(0), seconds());
  s.start = run_start::idle;
  EXPECT_EQ(gap(0), seconds());
  EXPECT_EQ(gap(1), seconds(4));
  s.start = run_start::idle_graph;
  EXPECT_EQ(gap(0), seconds(3));
  EXPECT_EQ(gap(1), seconds(4));
}

}  // namespace host_time_test
}  // namespace attnsim
