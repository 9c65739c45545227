#include "model/cost/bound.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/attention/tokens.hpp"
#include "model/cost/kernel.hpp"
#include "model/cost/volume.hpp"

namespace attnsim {
namespace {

double distinct(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  return static_cast<double>(std::unique(values.begin(), values.end()) - values.begin());
}

double crossings_of_rings(const rank_grid& grid, axis_set axes, const std::vector<int>& node_of) {
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

double crossings_of_pairs(const rank_grid& grid, axis_set axes, const std::vector<int>& node_of) {
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

ranks_on_nodes::ranks_on_nodes(const network& net, rank_grid whole, const std::vector<int>& devices)
    : grid_(std::move(whole)) {
  for (const int device : devices) node_of_.push_back(net.node_of(device));
  nodes_ = distinct(node_of_);
}

double ranks_on_nodes::ring_crossings(axis_set axes) {
  const auto [known, is_new] = of_rings_.try_emplace(axes);
  if (is_new) known->second = crossings_of_rings(grid_, axes, node_of_);
  return known->second;
}

double ranks_on_nodes::pair_crossings(axis_set axes) {
  const auto [known, is_new] = of_pairs_.try_emplace(axes);
  if (is_new) known->second = crossings_of_pairs(grid_, axes, node_of_);
  return known->second;
}

time_bound::time_bound(const cluster& c, const attention& a) : cluster_(c), attention_(a) {
  pairs_ = static_cast<double>(visible_pairs(a)) * static_cast<double>(a.batch * a.heads);
  const auto vertices = c.network.vertices();
  device_egress_ = largest_egress(c.network, [&](vertex_id v) {
    return vertices[v].kind == vertex_kind::device ? static_cast<int>(v) : -1;
  });
  node_egress_ = largest_egress(c.network, [&](vertex_id v) { return vertices[v].node; });
  fastest_ = c.fastest_device();
}

double time_bound::computation(const strategy& s, int ranks, pass_kind pass) const {
  const auto operations =
      pairs_ * operations_a_pair(pass, attention_.head_dim, attention_.value_dim()) / ranks;
  const auto& device = cluster_.device;
  const auto rate =
      highest_rate(device, device.kernel(s.kernel, attention_.dtype), attention_.dtype, pass);
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
  ranks_on_nodes ranks(cluster_.network, whole_grid(s), devices);
  return of(s, ranks, pass);
}

seconds time_bound::of(const strategy& s, ranks_on_nodes& ranks, pass_kind pass) const {
  const auto& grid = ranks.grid();
  const auto v = volume_of(s, attention_, pass);
  const double leaving = node_egress_ > 0 ? grid.ranks() / (ranks.nodes() * node_egress_) : 0;
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
                             : exchange             ? ranks.pair_crossings(axes)
                                                    : ranks.ring_crossings(axes);
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
