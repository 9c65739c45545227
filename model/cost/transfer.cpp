#include "model/cost/transfer.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "model/rings.hpp"

namespace attnsim {
namespace {

enum class pattern_kind { message, ring, pairs };

pattern_kind kind_of(op_kind kind) {
  if (kind == op_kind::all_to_all) return pattern_kind::pairs;
  return is_collective(kind) ? pattern_kind::ring : pattern_kind::message;
}

link_kind slower(link_kind a, link_kind b) {
  return std::max(a, b);
}

}  // namespace

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
  for (int rank = 0; rank < ranks; ++rank) {
    if (!is_collective(op.kind)) {
      if (const int peer = s.send_peer(op, rank); peer != rank) add_message(p, rank, peer);
    } else if (s.grid.place_in_group(rank, op.axes) == 0) {
      const auto group = s.grid.group(rank, op.axes);
      if (group.size() < 2) continue;
      kind_of(op.kind) == pattern_kind::ring ? add_ring(p, group) : add_pairs(p, group);
    }
  }
  return p;
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

void transfers::note(std::span<const link_id> path, double weight) {
  for (const auto id : path) noted_.push_back({id, weight});
}

void transfers::add_message(pattern_data& p, int sender, int receiver) {
  const auto path = route(sender, receiver);
  const auto kind = transport_of(cluster_.network, path);
  const auto& transport = cluster_.device.transport(kind);
  note(path, 1 / transport.efficiency);
  p.sent[static_cast<std::size_t>(sender)] = static_cast<int>(p.flows.size());
  p.received[static_cast<std::size_t>(receiver)] = static_cast<int>(p.flows.size());
  close_flow(p, {sender, receiver}, transport.latency + links_latency(path), kind);
}

void transfers::add_ring(pattern_data& p, const std::vector<int>& group) {
  std::vector<int> members;
  std::map<int, int> rank_of;
  for (const int rank : group) {
    members.push_back(devices_[static_cast<std::size_t>(rank)]);
    rank_of[members.back()] = rank;
  }
  std::sort(members.begin(), members.end());
  const auto channels = ring_channels(cluster_.network, members);
  auto kind = link_kind::nvlink;
  seconds slowest_hop;
  for (const auto& ring : channels) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const auto path = route(rank_of[ring[i]], rank_of[ring[(i + 1) % ring.size()]]);
      note(path, 1.0 / static_cast<double>(channels.size()));
      kind = slower(kind, transport_of(cluster_.network, path));
      slowest_hop = std::max(slowest_hop, links_latency(path));
    }
  }
  const auto& transport = cluster_.device.transport(kind);
  for (auto& use : noted_) use.weight /= transport.collective_efficiency;
  for (const int rank : group)
    p.sent[static_cast<std::size_t>(rank)] = static_cast<int>(p.flows.size());
  for (const int rank : group)
    p.received[static_cast<std::size_t>(rank)] = static_cast<int>(p.flows.size());
  const auto steps = static_cast<double>(group.size() - 1);
  close_flow(p, group,
             transport.collective_latency + steps * (transport.step_latency + slowest_hop), kind);
}

void transfers::add_pairs(pattern_data& p, const std::vector<int>& group) {
  auto kind = link_kind::nvlink;
  seconds slowest;
  const auto peers = static_cast<double>(group.size() - 1);
  for (const int from : group) {
    for (const int to : group) {
      if (from == to) continue;
      const auto path = route(from, to);
      note(path, 1 / peers);
      kind = slower(kind, transport_of(cluster_.network, path));
      slowest = std::max(slowest, links_latency(path));
    }
  }
  const auto& transport = cluster_.device.transport(kind);
  for (auto& use : noted_) use.weight /= transport.efficiency;
  for (const int rank : group)
    p.sent[static_cast<std::size_t>(rank)] = static_cast<int>(p.flows.size());
  for (const int rank : group)
    p.received[static_cast<std::size_t>(rank)] = static_cast<int>(p.flows.size());
  close_flow(p, group, transport.collective_latency + slowest, kind);
}

void transfers::close_flow(pattern_data& p, std::vector<int> members, seconds latency,
                           link_kind kind) {
  std::sort(noted_.begin(), noted_.end(),
            [](const auto& a, const auto& b) { return a.link < b.link; });
  const auto first = uses_.size();
  for (const auto& use : noted_) {
    if (uses_.size() > first && uses_.back().link == use.link) {
      uses_.back().weight += use.weight;
    } else {
      uses_.push_back(use);
    }
  }
  noted_.clear();
  p.flows.push_back({first, uses_.size(), latency, kind});
  p.members.push_back(std::move(members));
  p.channels = std::max(p.channels, cluster_.device.transport(kind).channels);
}

flow_form transfers::form(int pattern, int flow) const {
  const auto& f = at(pattern).flows[static_cast<std::size_t>(flow)];
  return {std::span(uses_).subspan(f.first_use, f.last_use - f.first_use), f.latency, f.transport};
}

}  // namespace attnsim
