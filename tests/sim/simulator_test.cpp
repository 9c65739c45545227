#include "sim/simulator.hpp"

#include <gtest/gtest.h>

#include "model/schedules/schedules.hpp"

namespace attnsim {
namespace {

cluster star(int nodes, const std::string& extra = "") {
  return read_cluster(
      config_node::parse_text("name: star\ndevice: ideal\nnodes: " + std::to_string(nodes) +
                                  "\ndevices_per_node: 1\nnode: {links: none}\n"
                                  "nics: {per_node: 1, bandwidth: 50 GB/s, latency: 1 us}\n"
                                  "fabric: {kind: star}\n" +
                                  extra,
                              "star.yaml"));
}

TEST(simulator, ring_steps_on_a_star) {
  const auto c = star(4);
  // K and V of one rank: 2 x 2 B x 8 heads x 128 x n tokens = 64 MiB for n = 16384; compute takes
  // less time than a step.
  const attention a{
      .heads = 8, .kv_heads = 8, .head_dim = 128, .sequence = 4 * 16384, .mask = mask_kind::full};
  const auto s = complete({.schedule = "ring", .tokens = token_layout::contiguous}, a, 4);
  const instance i(c, a, s, pass_kind::forward);
  const auto t = simulate(i, {.record = true});
  for (const auto& v : t.ranks[0].intervals) {
    printf("%s %g %g\n", std::string(name_of(i.program().program[v.operation].kind)).c_str(),
           v.start.value(), v.end.value());
  }
  printf("%zu classes %.9g\n", t.ranks.size(), t.duration().value());
}

}  // namespace
}  // namespace attnsim
