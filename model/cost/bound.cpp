#include "model/cost/bound.hpp"

#include <algorithm>
#include <map>

#include "model/attention/tokens.hpp"
#include "model/cost/kernel.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/grid.hpp"

namespace attnsim {
namespace {

/// Bytes that a rank sends in a pass: round its row, round its column, along either, and exchanging heads.
struct volume {
  double row = 0, column = 0, either = 0, heads = 0;
  bool one_kernel = false;  ///< all of it before or after the computation
};

/// A rank's Q, and its K and V together, as the schedule inside an exchange of heads has them.
struct shard {
  double q, kv;
};

shard shard_of(const strategy& s, const attention& a) {
  const double places = static_cast<double>(s.rows) * s.cols * s.ulysses;
  const double head_bytes = static_cast<double>(a.batch * a.head_dim * element_bytes(a.dtype)) *
                            static_cast<double>(a.sequence) / places;
  const double keys = static_cast<double>(a.kv_heads) / s.tensor_parallel;
  return {head_bytes * static_cast<double>(a.heads) / s.tensor_parallel,
          head_bytes * 2 * std::max(keys, static_cast<double>(s.ulysses))};
}

volume volume_of(const strategy& s, const attention& a, bool backward) {
  const auto [q, kv] = shard_of(s, a);
  const double R = s.rows, C = s.cols, U = s.ulysses;
  const double dkv = backward ? kv : 0;
  volume v{.heads = (U - 1) / U * (2 * q + kv)};
  const auto name = s.schedule;
  if (name == "double-ring") {
    v.column = (R - 1) * kv + R * dkv;
    v.row = R * (C - 1) * (kv + dkv);
  } else if (name == "startrail") {
    const double hops = R / C, team = C - 1;
    v.either = team * (2 * q + kv) + (hops - 1) * C * kv + team * (backward ? q + kv : 0) +
               (hops > 1 ? hops * C * dkv : 0);
  } else if (name == "tokenring" || (name == "burst" && backward)) {
    v.either = (R - 1) * q * (backward ? 3 : 2);
  } else if (name == "hierarchical-allgather") {
    v.row = (C - 1) * (kv + dkv);
    v.column = (R - 1) * C * (kv + dkv);
    v.one_kernel = true;
  } else if (C == 1 && (name == "ring" || name == "usp" || name == "ulysses" || name == "burst")) {
    v.column = R > 1 ? (R - 1) * kv + R * dkv : 0;
    v.one_kernel = R == 1;
  } else {  // attention2d, its overlapped form, mesh, allgather
    v.row = (C - 1) * q * (backward ? 3 : 2);
    v.column = (R - 1) * (kv + dkv);
    v.one_kernel = name == "attention2d" || name == "allgather";
  }
  return v;
}

/// How many times the traffic round each group along the axes leaves a node, over the ranks.
double ring_crossings(const rank_grid& grid, axis_set axes, const std::vector<int>& node_of) {
  std::vector<int> nodes;
  double total = 0;
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    if (grid.first_in_group(rank, axes) != rank) continue;
    nodes.clear();
    for (const int member : grid.group(rank, axes))
      nodes.push_back(node_of[static_cast<std::size_t>(member)]);
    std::sort(nodes.begin(), nodes.end());
    const auto distinct = std::unique(nodes.begin(), nodes.end()) - nodes.begin();
    if (distinct > 1) total += static_cast<double>(distinct);
  }
  return total / grid.ranks();
}

/// The share of what a rank sends in an all-to-all that goes to other nodes.
double pair_crossings(const rank_grid& grid, axis_set axes, const std::vector<int>& node_of) {
  const double size = grid.extent_of(axes);
  double total = 0;
  std::map<int, double> members;
  for (int rank = 0; rank < grid.ranks() && size > 1; ++rank) {
    if (grid.first_in_group(rank, axes) != rank) continue;
    members.clear();
    for (const int member : grid.group(rank, axes))
      ++members[node_of[static_cast<std::size_t>(member)]];
    for (const auto& [node, n] : members) total += n * (size - n) / (size - 1);
  }
  return total / grid.ranks();
}

/// The most that leaves any group of vertices, by the group's number; negative numbers are no group.
template <typename Group>
double largest_egress(const network& n, Group group_of) {
  std::map<int, double> egress;
  for (const auto& l : n.links()) {
    const int from = group_of(l.from);
    if (from >= 0 && from != group_of(l.to)) egress[from] += l.capacity.value();
  }
  double most = 0;
  for (const auto& [group, rate] : egress) most = std::max(most, rate);
  return most;
}

}  // namespace

time_bound::time_bound(const cluster& c, const attention& a) : cluster_(c), attention_(a) {
  const token_set all{{0, a.sequence, 1}};
  pairs_ = static_cast<double>(visible_pairs(all, all, a)) * static_cast<double>(a.batch * a.heads);
  const auto vertices = c.network.vertices();
  device_egress_ = largest_egress(c.network, [&](vertex_id v) {
    return vertices[v].kind == vertex_kind::device ? static_cast<int>(v) : -1;
  });
  node_egress_ = largest_egress(c.network, [&](vertex_id v) { return vertices[v].node; });
  for (const double speed : c.device_speed) fastest_ = std::max(fastest_, speed);
}

double time_bound::computation(const strategy& s, int ranks, pass_kind pass) const {
  const double operations = pairs_ * static_cast<double>(attention_.head_dim) *
                            (pass == pass_kind::forward ? 4 : 10) / ranks;
  const auto& device = cluster_.device;
  const auto rate = highest_rate(device, device.kernel(s.kernel), attention_.dtype, pass);
  return operations / rate.value() / fastest_;
}

/// A full mask gives every rank the same work, and zigzag where each attends to all keys.
bool time_bound::equal_work(const strategy& s) const {
  const auto& a = attention_;
  const bool plain = a.padding == 0 && a.window == 0 && a.documents.empty();
  const bool zigzag = s.tokens == token_layout::zigzag && s.cols == 1;
  return plain && (a.mask == mask_kind::full || zigzag);
}

seconds time_bound::of(const strategy& s, const std::vector<int>& devices, pass_kind pass) const {
  const rank_grid grid({s.rows, s.cols, s.ulysses, s.tensor_parallel});
  const auto v = volume_of(s, attention_, pass == pass_kind::backward);
  double crossing = 0, heads_crossing = 0;  // seconds
  if (node_egress_ > 0) {
    std::vector<int> node_of;
    for (const int device : devices) node_of.push_back(cluster_.network.node_of(device));
    auto used = node_of;
    std::sort(used.begin(), used.end());
    const auto nodes = std::unique(used.begin(), used.end()) - used.begin();
    const double per_byte = grid.ranks() / (static_cast<double>(nodes) * node_egress_);
    heads_crossing = v.heads * pair_crossings(grid, only(2), node_of) * per_byte;
    crossing = heads_crossing + (v.row * ring_crossings(grid, only(1), node_of) +
                                 v.column * ring_crossings(grid, only(0), node_of)) *
                                    per_byte;
  }
  const double total = v.row + v.column + v.either + v.heads;
  const double compute = computation(s, grid.ranks(), pass);
  const double port = device_egress_ > 0 ? 1 / device_egress_ : 0;
  double apart = (v.one_kernel ? total : v.heads) * port;  // from computation
  if (equal_work(s)) apart = std::max(apart, (v.one_kernel ? crossing : heads_crossing) / 2);
  return seconds(std::max({compute + apart, total * port, crossing}));
}

}  // namespace attnsim
