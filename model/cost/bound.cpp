#include "model/cost/bound.hpp"

#include <algorithm>
#include <map>

#include "model/attention/tokens.hpp"
#include "model/cost/kernel.hpp"
#include "model/cost/volume.hpp"

namespace attnsim {
namespace {

double distinct(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  return static_cast<double>(std::unique(values.begin(), values.end()) - values.begin());
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
    if (const double n = distinct(nodes); n > 1) total += n;
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

/// Seconds in which a rank's links carry what it sends, and the mean node's what leaves it.
struct load {
  double port = 0, crossing = 0;

  load& operator+=(const load& more) {
    port += more.port;
    crossing += more.crossing;
    return *this;
  }
};

}  // namespace

time_bound::time_bound(const cluster& c, const attention& a) : cluster_(c), attention_(a) {
  pairs_ = static_cast<double>(visible_pairs(a)) * static_cast<double>(a.batch * a.heads);
  const auto vertices = c.network.vertices();
  device_egress_ = largest_egress(c.network, [&](vertex_id v) {
    return vertices[v].kind == vertex_kind::device ? static_cast<int>(v) : -1;
  });
  node_egress_ = largest_egress(c.network, [&](vertex_id v) { return vertices[v].node; });
  for (const double speed : c.device_speed) fastest_ = std::max(fastest_, speed);
}

double time_bound::computation(const strategy& s, int ranks, pass_kind pass) const {
  const auto operations =
      pairs_ * operations_a_pair(pass, attention_.head_dim, attention_.value_dim()) / ranks;
  const auto& device = cluster_.device;
  const auto rate = highest_rate(device, device.kernel(s.kernel), attention_.dtype, pass);
  return operations / rate.value() / fastest_;
}

/// A full mask gives every rank the same work, and zigzag where each attends to all keys.
bool time_bound::equal_work(const strategy& s) const {
  const auto& a = attention_;
  if (a.padding != 0 || a.window != 0 || find_algorithm(s.schedule).whole_queries) return false;
  const bool whole = a.documents.empty();
  const bool zigzag =
      s.tokens == token_layout::zigzag || (whole && s.tokens == token_layout::zigzag_stream);
  return (whole && a.mask == mask_kind::full) || (zigzag && s.cols == 1);
}

seconds time_bound::of(const strategy& s, const std::vector<int>& devices, pass_kind pass) const {
  const auto grid = whole_grid(s);
  const auto v = volume_of(s, attention_, pass);
  std::vector<int> node_of;
  for (const int device : devices) node_of.push_back(cluster_.network.node_of(device));
  const double leaving = node_egress_ > 0 ? grid.ranks() / (distinct(node_of) * node_egress_) : 0;
  const double port = device_egress_ > 0 ? 1 / device_egress_ : 0;
  load all, heads;
  double transposed = 0;
  for (const auto& [axes, bytes, round] : v.parts) {
    const auto sent = static_cast<double>(bytes);
    if (axes == 0) {
      transposed += sent * port;
      continue;
    }
    const bool exchange = axes == exchange_axis(grid);
    const double crossings = leaving == 0 || !round ? 0
                             : exchange             ? pair_crossings(grid, axes, node_of)
                                                    : ring_crossings(grid, axes, node_of);
    const load one{sent * port, sent * crossings * leaving};
    all += one;
    if (exchange) heads += one;
  }
  const auto& apart = v.apart ? all : heads;  // from computation
  const double before_or_after =
      equal_work(s) ? std::max(apart.port, apart.crossing / 2) : apart.port;
  const double compute = computation(s, grid.ranks(), pass);
  return seconds(std::max({compute + before_or_after, all.port + transposed, all.crossing}));
}

}  // namespace attnsim
