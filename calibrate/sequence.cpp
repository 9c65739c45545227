#include "calibrate/sequence.hpp"

#include "calibrate/predicted.hpp"
#include "model/cost/placed_schedule.hpp"
#include "sim/simulator.hpp"

namespace attnsim {
namespace {

/// Keys that are copied, and go round the ranks.
schedule program_of(const sequence_point& p) {
  schedule_builder b("sequence", rank_grid({p.members}), pass_kind::forward);
  const int exchanges = b.stream("exchanges");
  auto keys = b.own({tensor::k});
  position at;
  for (int number = 0; number < p.count; ++number) {
    const auto before = keys;
    if (p.communicates(number)) {
      at.shift[0] = (at.shift[0] + 1) % p.members;
      keys = b.chunk({tensor::k}, at);
      b.add(op_kind::shift, exchanges, before, keys, only(0), -1);
    } else {
      keys = b.chunk({tensor::k}, at);
      b.add(op_kind::copy, 0, before, keys);
    }
  }
  return b.finish();
}

/// Of what was launched ahead of the device no launch counts, and it is no graph.
cluster without_launches(const cluster& c) {
  auto result = c;
  result.device.idle_start.graph_launch = {};
  result.device.idle_start.gap_communication = {};
  return result;
}

}  // namespace

seconds simulated(const sequence_point& p, const cluster& c) {
  const auto on = p.start == sequence_start::ahead ? without_launches(c) : c;
  const auto cast = on.device.memory_time(byte_count(memory_traffic(p.cast())));
  const attention problem{.heads = 1, .kv_heads = 1, .sequence = p.members};
  const strategy how{
      .schedule = "sequence",
      .tokens = token_layout::contiguous,
      .start = p.start == sequence_start::idle ? run_start::idle : run_start::idle_graph};
  std::vector<int> devices;
  for (int i = 0; i < p.members; ++i) devices.push_back(i);
  const double bytes = p.members > 1 ? flow_of(p.exchange(), on).bytes : 0;
  placed_schedule all(placed_ranks(on, devices), problem, how, program_of(p));
  all.use_local_times([&](std::size_t, int) { return cast; });
  all.use_sent_bytes([&](std::size_t, int) { return bytes; });
  return simulate(all).duration();
}

}  // namespace attnsim
