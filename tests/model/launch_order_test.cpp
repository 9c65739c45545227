#include "model/schedule/launch_order.hpp"

#include <gmock/gmock.h>

#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim {
namespace launch_order_test {

std::string kinds(const schedule& s) {
  std::string text;
  for (const auto& op : s.program) text += std::string(name_of(op.kind)) + ' ';
  return text;
}

schedule ring(pass_kind pass, launch_order order) {
  const attention a{.heads = 1, .kv_heads = 1, .sequence = 48};
  return make_schedule({.schedule = "ring", .rows = 3, .cols = 1, .launch = order}, a, pass);
}

TEST(launch_order, puts_a_rings_kernels_before_the_shifts_that_they_hide) {
  EXPECT_EQ(kinds(ring(pass_kind::forward, launch_order::communication_first)),
            "shift attention shift attention attention copy ");
  EXPECT_EQ(kinds(ring(pass_kind::forward, launch_order::compute_first)),
            "attention shift attention shift attention copy ");
}

/// Each operation after those it needs, each stream in its own order, for all schedules.
TEST(launch_order, keeps_what_operations_need) {
  const attention a{.heads = 8, .kv_heads = 8, .sequence = 8 * 16};
  for (const auto& algorithm : algorithms()) {
    for (const auto& [rows, cols] : grids_of(8)) {
      const strategy s{.schedule = algorithm.name, .rows = rows, .cols = cols};
      if (!refusal(s, a).empty()) continue;
      for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
        if (!has_pass(s, pass)) continue;
        const auto written = make_schedule(s, a, pass);
        const auto launched = launched_compute_first(written);
        EXPECT_EQ(launched.program.size(), written.program.size());
        std::vector<std::vector<op_kind>> of_stream(written.streams.size());
        auto expected = of_stream;
        for (const auto& op : written.program)
          expected[static_cast<std::size_t>(op.stream)].push_back(op.kind);
        for (const auto& op : launched.program) {
          for (std::size_t stream = 0; stream < op.needs.size(); ++stream) {
            EXPECT_LE(op.needs[stream], of_stream[stream].size());
          }
          of_stream[static_cast<std::size_t>(op.stream)].push_back(op.kind);
        }
        EXPECT_EQ(of_stream, expected);
      }
    }
  }
}

}  // namespace launch_order_test
}  // namespace attnsim
