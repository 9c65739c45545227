#include "model/cost/transfer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "model/cluster/rings.hpp"

namespace attnsim {
namespace {

/// All-gathers and reduce-scatters go round the same rings.
op_kind alike(op_kind kind) {
  return kind == op_kind::reduce_scatter ? op_kind::all_gather : kind;
}

/// Of a normal distribution of deviation 1, one for each seed: the sum of twelve splitmix64 draws from 0 to 1, less 6.
double drawn(std::uint64_t seed) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) {
    std::uint64_t x = (seed += 0x9e3779b97f4a7c15ull);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    sum += static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
  }
  return sum;
}

/// Of the connections from one rank to another; the same on every run.
double uneven_share(const transport_profile& t, int sender, int receiver) {
  if (t.share_spread == 0) return 1;
  const auto ends =
      (static_cast<std::uint64_t>(sender) << 32) + static_cast<std::uint64_t>(receiver);
  return std::exp(t.share_spread * drawn(ends));
}

/// Works one pattern out.
class pattern_builder {
 public:
  pattern_builder(const cluster& c, const std::vector<int>& devices, const rank_grid& grid)
      : cluster_(c), devices_(devices), grid_(grid) {
    result_.sent.assign(devices.size(), -1);
    result_.received.assign(devices.size(), -1);
    result_.loads.resize(c.network.links().size());
  }

  communication_pattern messages(const std::vector<int>& peers) && {
    const auto sends = [&](int rank) { return peers[static_cast<std::size_t>(rank)] != rank; };
    const bool one_way =
        std::none_of(peers.begin(), peers.end(), [&](int peer) { return sends(peer); });
    for (int rank = 0; rank < grid_.ranks(); ++rank) {
      if (sends(rank)) add_message(rank, peers[static_cast<std::size_t>(rank)], one_way);
    }
    return std::move(result_);
  }

  /// A message from each member of `whole`'s groups to one other.
  communication_pattern messages_of(const communication_pattern& whole, bool all_pairs,
                                    const std::vector<int>& peers) && {
    for (int rank = 0; rank < grid_.ranks(); ++rank) {
      const int group = whole.sent[static_cast<std::size_t>(rank)];
      if (group < 0) continue;
      add_part(whole, static_cast<std::size_t>(group), all_pairs, rank,
               peers[static_cast<std::size_t>(rank)]);
    }
    return std::move(result_);
  }

  /// `all_pairs`: else a ring.
  communication_pattern collectives(axis_set axes, bool all_pairs) && {
    device_groups groups, devices;
    for (int rank = 0; rank < grid_.ranks(); ++rank) {
      if (grid_.first_in_group(rank, axes) != rank) continue;
      groups.push_back(grid_.group(rank, axes));
      devices.push_back(devices_of(groups.back()));
    }
    const auto flows =
        all_pairs ? pairs_flows(cluster_, devices, 0) : ring_flows(cluster_, devices, 1, 0);
    for (std::size_t i = 0; i < flows.size(); ++i) add_group(groups[i], flows[i]);
    return std::move(result_);
  }

 private:
  int device_of(int rank) const { return devices_[static_cast<std::size_t>(rank)]; }

  std::vector<int> devices_of(const std::vector<int>& group) const {
    std::vector<int> devices;
    for (const int rank : group) devices.push_back(device_of(rank));
    return devices;
  }

  void add_message(int sender, int receiver, bool one_way) {
    const auto& net = cluster_.network;
    std::vector<link_id> path;
    net.route(device_of(sender), device_of(receiver), path);
    const auto kind = transport_of(net, path);
    const auto& transport = cluster_.device.transport(kind);
    collective_flow message{
        .uses = {},
        .latency = {transport.latency, one_way ? transport.one_way_ramp : transport.ramp},
        .transport = kind};
    seconds links;
    for (const auto id : path) {
      links += net.links()[id].latency;
      message.uses.push_back({id, 1});
    }
    message.latency.fixed += links;
    message.take_shares(net, transport,
                        one_way ? transport.one_way_efficiency : transport.efficiency,
                        transport.shared_efficiency);
    add_message(sender, receiver, message);
    result_.flows.back().share = uneven_share(transport, sender, receiver);
  }

  /// With the latency of its group's flow.
  void add_part(const communication_pattern& whole, std::size_t group, bool all_pairs, int sender,
                int receiver) {
    const auto& net = cluster_.network;
    std::vector<link_id> path;
    net.route(device_of(sender), device_of(receiver), path);
    const auto& flow = whole.flows[group];
    const auto members = whole.members[group].size();
    const auto& transport = cluster_.device.transport(flow.transport);
    const auto& t = all_pairs ? transport : transport.among(members);
    collective_flow message{.uses = {}, .latency = flow.latency, .transport = flow.transport};
    for (const auto id : path) message.uses.push_back({id, 1});
    message.take_shares(net, t, all_pairs ? t.efficiency : t.collective_efficiency,
                        all_pairs ? t.shared_efficiency : t.collective_shared_efficiency);
    for (auto& use : message.uses) {
      if (all_pairs && is_device_pcie(net, use.link)) use.weight *= t.crowded(members);
    }
    add_message(sender, receiver, message);
  }

  void add_message(int sender, int receiver, const collective_flow& message) {
    result_.sent[static_cast<std::size_t>(sender)] = next_flow();
    result_.received[static_cast<std::size_t>(receiver)] = next_flow();
    add_flow({sender, receiver}, message);
    const auto ahead = cluster_.device.transport(message.transport).run_ahead;
    result_.flows.back().run_ahead = static_cast<double>(ahead.value());
  }

  void add_group(const std::vector<int>& group, const collective_flow& flow) {
    for (const int rank : group) {
      result_.sent[static_cast<std::size_t>(rank)] = next_flow();
      result_.received[static_cast<std::size_t>(rank)] = next_flow();
    }
    add_flow(group, flow);
  }

  int next_flow() const { return static_cast<int>(result_.flows.size()); }

  void add_flow(std::vector<int> members, const collective_flow& flow) {
    auto& p = result_;
    const auto first = p.uses.size();
    p.uses.insert(p.uses.end(), flow.uses.begin(), flow.uses.end());
    for (const auto& use : flow.uses) p.loads[use.link] += use.weight;
    p.flows.push_back({first, p.uses.size(), flow.latency, flow.transport, flow.rate_limit});
    p.members.push_back(std::move(members));
    p.channels = std::max(p.channels, cluster_.device.transport(flow.transport).channels);
    p.transport = std::max(p.transport, flow.transport);
  }

  const cluster& cluster_;
  const std::vector<int>& devices_;
  const rank_grid& grid_;
  communication_pattern result_;
};

communication_pattern work_out(const cluster& c, const std::vector<int>& devices, const schedule& s,
                               const operation& op) {
  pattern_builder builder(c, devices, s.grid);
  if (is_collective(op.kind))
    return std::move(builder).collectives(op.axes, op.kind == op_kind::all_to_all);
  std::vector<int> peers;
  for (int rank = 0; rank < s.grid.ranks(); ++rank) peers.push_back(s.send_peer(op, rank));
  return std::move(builder).messages(peers);
}

/// Whom every rank sends to: one order for each distance of an all-to-all, else for each channel's ring. Empty where groups have
/// different numbers of channels.
std::vector<std::vector<int>> peers_in(const network& net, const std::vector<int>& devices,
                                       const std::vector<std::vector<int>>& groups,
                                       bool all_pairs) {
  std::map<int, int> rank_on;
  for (std::size_t rank = 0; rank < devices.size(); ++rank)
    rank_on[devices[rank]] = static_cast<int>(rank);
  std::vector<std::vector<int>> peers;
  for (const auto& group : groups) {
    std::vector<int> members;
    for (const int rank : group) members.push_back(devices[static_cast<std::size_t>(rank)]);
    std::sort(members.begin(), members.end());
    const auto n = members.size();
    const auto rings = all_pairs ? std::vector(n - 1, members) : ring_channels(net, members);
    if (peers.empty()) peers.resize(rings.size(), std::vector<int>(devices.size(), -1));
    if (peers.size() != rings.size()) return {};
    for (std::size_t r = 0; r < rings.size(); ++r) {
      const auto distance = all_pairs ? r + 1 : 1;
      for (std::size_t i = 0; i < n; ++i)
        peers[r][static_cast<std::size_t>(rank_on.at(rings[r][i]))] =
            rank_on.at(rings[r][(i + distance) % n]);
    }
  }
  return peers;
}

}  // namespace

double stretch(const workload& w, const operation& op, const transport_profile& t) {
  if (op.reads.size() < 2 || alike(op.kind) == op_kind::all_gather) return 1;
  double total = 0, longest = 0;
  for (const auto& o : op.reads) {
    const auto bytes = static_cast<double>(w.bytes(o).value());
    total += bytes;
    longest = std::max(longest, bytes);
  }
  return std::max(1.0, longest / (t.message_share * total));
}

std::shared_ptr<const communication_pattern> placed_ranks::pattern(const schedule& s,
                                                                   const operation& op) const {
  auto& known = known_[{s.grid.extents(), alike(op.kind), op.axes, op.distance}];
  if (!known) {
    known = std::make_shared<const communication_pattern>(work_out(cluster_, devices_, s, op));
  }
  return known;
}

const collective_messages& placed_ranks::messages(const schedule& s, const operation& op) const {
  const auto [place, is_new] =
      known_messages_.try_emplace({s.grid.extents(), alike(op.kind), op.axes, op.distance});
  auto& known = place->second;
  if (!is_new || !is_collective(op.kind)) return known;
  const auto whole = pattern(s, op);
  if (cluster_.device.transport(whole->transport).run_ahead == byte_count()) return known;
  const bool all_pairs = op.kind == op_kind::all_to_all;
  for (const auto& peers : peers_in(cluster_.network, devices_, whole->members, all_pairs)) {
    known.at_once.push_back(std::make_shared<const communication_pattern>(
        pattern_builder(cluster_, devices_, s.grid).messages_of(*whole, all_pairs, peers)));
    known.rounds = all_pairs ? 1 : static_cast<int>(whole->members.front().size()) - 1;
  }
  return known;
}

void transfers::add(std::shared_ptr<const communication_pattern> pattern) {
  patterns_.push_back(std::move(pattern));
  parts_.push_back({patterns() - 1});
}

transfers::transfers(const schedule& s, const placed_ranks& ranks) {
  std::map<std::tuple<op_kind, axis_set, int>, int> numbers;
  for (const auto& op : s.program) {
    if (!is_communication(op.kind)) {
      pattern_of_op_.push_back(-1);
      continue;
    }
    const auto [number, is_new] =
        numbers.try_emplace({alike(op.kind), op.axes, op.distance}, patterns());
    if (is_new) {
      add(ranks.pattern(s, op));
      const auto& messages = ranks.messages(s, op);
      if (messages.rounds > 0) {
        parts_.back() = {patterns(), static_cast<int>(messages.at_once.size()), messages.rounds};
        for (const auto& pattern : messages.at_once) add(pattern);
      }
    }
    pattern_of_op_.push_back(number->second);
  }
}

flow_form transfers::form(int pattern, int flow) const {
  const auto& p = at(pattern);
  const auto& f = p.flows[static_cast<std::size_t>(flow)];
  return {std::span(p.uses).subspan(f.first_use, f.last_use - f.first_use),
          f.latency,
          f.transport,
          f.rate_limit,
          f.share,
          f.run_ahead};
}

bool transfers::runs_ahead(int pattern) const {
  const auto& flows = at(pattern).flows;
  return std::any_of(flows.begin(), flows.end(), [](const auto& f) { return f.run_ahead > 0; });
}

}  // namespace attnsim
