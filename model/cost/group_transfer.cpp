#include "model/cost/group_transfer.hpp"

#include <map>

namespace attnsim {
namespace {

group_transfer together(const network& net, const std::vector<collective_flow>& flows,
                        double bytes_a_byte) {
  group_transfer all{.bytes_a_byte = flows.empty() ? 0 : bytes_a_byte};
  std::map<link_id, double> busy;
  for (const auto& flow : flows) {
    for (const auto& use : flow.uses)
      busy[use.link] += use.weight / net.links()[use.link].capacity.value();
    all.latency = std::max(all.latency, flow.latency);
    all.transport = std::max(all.transport, flow.transport);
    all.least_seconds_a_byte = std::max(all.least_seconds_a_byte, 1 / flow.rate_limit);
  }
  for (const auto& [link, time] : busy) all.uses.push_back({link, time});
  return all;
}

}  // namespace

double group_transfer::seconds_a_byte() const {
  double slowest = least_seconds_a_byte;
  for (const auto& use : uses) slowest = std::max(slowest, use.weight);
  return slowest;
}

seconds group_transfer::time_alone(double buffer_bytes) const {
  if (!moves() || buffer_bytes <= 0) return {};
  const double bytes = buffer_bytes * bytes_a_byte;
  return latency.of(bytes) + seconds(bytes * seconds_a_byte());
}

group_transfer transfer_in(const cluster& c, collective_kind kind, const device_groups& groups) {
  if (groups.empty() || groups.front().size() < 2) return {};
  const double n = static_cast<double>(groups.front().size()), others = (n - 1) / n;
  if (kind == collective_kind::all_to_all)
    return together(c.network, pairs_flows(c, groups, 1), others);
  const int rounds = kind == collective_kind::all_reduce ? 2 : 1;
  return together(c.network, ring_flows(c, groups, rounds, 1), rounds * others);
}

group_transfer send_in(const cluster& c, const device_groups& pairs) {
  if (pairs.empty()) return {};
  return together(c.network, pairs_flows(c, pairs, 1), 1);
}

}  // namespace attnsim
