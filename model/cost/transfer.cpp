#include "model/cost/transfer.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "model/cost/collective.hpp"

namespace attnsim {
namespace {

enum class pattern_kind { message, ring, pairs };

pattern_kind kind_of(op_kind kind) {
  if (kind == op_kind::all_to_all) return pattern_kind::pairs;
  return is_collective(kind) ? pattern_kind::ring : pattern_kind::message;
}

}  // namespace

double stretch(const workload& w, const operation& op, const transport_profile& t) {
  if (op.reads.size() < 2 || kind_of(op.kind) == pattern_kind::ring) return 1;
  double total = 0, longest = 0;
  for (const auto& o : op.reads) {
    const auto bytes = static_cast<double>(w.bytes(o).value());
    total += bytes;
    longest = std::max(longest, bytes);
  }
  return std::max(1.0, longest / (t.message_share * total));
}

transfers::transfers(const schedule& s, const cluster& c, const std::vector<int>& devices)
    : cluster_(c), devices_(devices) {
  using key = std::tuple<pattern_kind, bool, axis_set, int>;
  std::map<key, int> known;
  for (const auto& op : s.program) {
    if (!is_communication(op.kind)) {
      pattern_of_op_.push_back(-1);
      continue;
    }
    const key k{kind_of(op.kind), op.kind == op_kind::transpose, op.axes, op.distance};
    const auto [where, is_new] = known.try_emplace(k, patterns());
    if (is_new) patterns_.push_back(make_pattern(s, op));
    pattern_of_op_.push_back(where->second);
  }
}

transfers::pattern_data transfers::make_pattern(const schedule& s, const operation& op) {
  pattern_data p;
  const int ranks = s.grid.ranks();
  p.sent.assign(static_cast<std::size_t>(ranks), -1);
  p.received.assign(static_cast<std::size_t>(ranks), -1);
  if (!is_collective(op.kind)) {
    add_messages(p, s, op);
    return p;
  }
  std::vector<std::vector<int>> groups;
  device_groups devices;
  for (int rank = 0; rank < ranks; ++rank) {
    if (s.grid.first_in_group(rank, op.axes) != rank) continue;
    groups.push_back(s.grid.group(rank, op.axes));
    devices.push_back(devices_of(groups.back()));
  }
  const auto flows = kind_of(op.kind) == pattern_kind::ring ? ring_flows(cluster_, devices, 1, 0)
                                                            : pairs_flows(cluster_, devices, 0);
  for (std::size_t i = 0; i < flows.size(); ++i) add_group(p, groups[i], flows[i]);
  return p;
}

void transfers::add_messages(pattern_data& p, const schedule& s, const operation& op) {
  std::vector<int> peers;
  for (int rank = 0; rank < s.grid.ranks(); ++rank) peers.push_back(s.send_peer(op, rank));
  const auto sends = [&](int rank) { return peers[static_cast<std::size_t>(rank)] != rank; };
  const bool one_way =
      std::none_of(peers.begin(), peers.end(), [&](int peer) { return sends(peer); });
  for (int rank = 0; rank < s.grid.ranks(); ++rank) {
    if (sends(rank)) add_message(p, rank, peers[static_cast<std::size_t>(rank)], one_way);
  }
}

std::vector<link_id> transfers::route(int from_rank, int to_rank) const {
  std::vector<link_id> path;
  cluster_.network.route(devices_[static_cast<std::size_t>(from_rank)],
                         devices_[static_cast<std::size_t>(to_rank)], path);
  return path;
}

seconds transfers::links_latency(std::span<const link_id> path) const {
  seconds total;
  for (const auto id : path) total += cluster_.network.links()[id].latency;
  return total;
}

void transfers::add_message(pattern_data& p, int sender, int receiver, bool one_way) {
  const auto path = route(sender, receiver);
  const auto kind = transport_of(cluster_.network, path);
  const auto& transport = cluster_.device.transport(kind);
  collective_flow message{.uses = {},
                          .latency = {transport.latency + links_latency(path),
                                      one_way ? transport.one_way_ramp : transport.ramp},
                          .transport = kind};
  for (const auto id : path) message.uses.push_back({id, 1});
  message.take_shares(cluster_.network, transport,
                      one_way ? transport.one_way_efficiency : transport.efficiency);
  p.sent[static_cast<std::size_t>(sender)] = static_cast<int>(p.flows.size());
  p.received[static_cast<std::size_t>(receiver)] = static_cast<int>(p.flows.size());
  add_flow(p, {sender, receiver}, message);
}

std::vector<int> transfers::devices_of(const std::vector<int>& group) const {
  std::vector<int> devices;
  for (const int rank : group) devices.push_back(devices_[static_cast<std::size_t>(rank)]);
  return devices;
}

void transfers::add_group(pattern_data& p, const std::vector<int>& group,
                          const collective_flow& flow) {
  for (const int rank : group) {
    p.sent[static_cast<std::size_t>(rank)] = static_cast<int>(p.flows.size());
    p.received[static_cast<std::size_t>(rank)] = static_cast<int>(p.flows.size());
  }
  add_flow(p, group, flow);
}

void transfers::add_flow(pattern_data& p, std::vector<int> members, const collective_flow& flow) {
  const auto first = uses_.size();
  uses_.insert(uses_.end(), flow.uses.begin(), flow.uses.end());
  p.flows.push_back({first, uses_.size(), flow.latency, flow.transport, flow.rate_limit});
  p.members.push_back(std::move(members));
  p.channels = std::max(p.channels, cluster_.device.transport(flow.transport).channels);
  p.transport = std::max(p.transport, flow.transport);
}

flow_form transfers::form(int pattern, int flow) const {
  const auto& f = at(pattern).flows[static_cast<std::size_t>(flow)];
  return {std::span(uses_).subspan(f.first_use, f.last_use - f.first_use), f.latency, f.transport,
          f.rate_limit};
}

}  // namespace attnsim
