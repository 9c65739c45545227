#include "model/limit/cuts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace attnsim {
namespace {

/// The devices nearest to a vertex: the lowest and the highest.
struct span_of_devices {
  int first = std::numeric_limits<int>::max();
  int last = -1;
};

/// By vertex, layer by layer of hops from the devices.
std::vector<span_of_devices> nearest_devices(const network& net) {
  const auto vertices = net.vertices().size();
  std::vector<span_of_devices> nearest(vertices);
  std::vector<int> hops(vertices, -1);
  std::vector<std::vector<vertex_id>> neighbours(vertices);
  for (const auto& l : net.links()) {
    neighbours[l.from].push_back(l.to);
    neighbours[l.to].push_back(l.from);
  }
  std::vector<vertex_id> layer;
  for (int d = 0; d < net.devices(); ++d) {
    nearest[net.device(d)] = {d, d};
    hops[net.device(d)] = 0;
    layer.push_back(net.device(d));
  }
  for (int distance = 1; !layer.empty(); ++distance) {
    std::vector<vertex_id> next;
    for (const auto v : layer) {
      for (const auto other : neighbours[v]) {
        if (hops[other] < 0) hops[other] = distance, next.push_back(other);
        if (hops[other] != distance) continue;
        nearest[other].first = std::min(nearest[other].first, nearest[v].first);
        nearest[other].last = std::max(nearest[other].last, nearest[v].last);
      }
    }
    layer = std::move(next);
  }
  return nearest;
}

class cut_list {
 public:
  cut_list(const network& net, const std::vector<int>& used, const link_shares& shares)
      : net_(net), shares_(shares), nearest_(nearest_devices(net)), before_(1) {
    std::vector<int> is_used(static_cast<std::size_t>(net.devices()));
    for (const int d : used) is_used[static_cast<std::size_t>(d)] = 1;
    for (const int one : is_used) before_.push_back(before_.back() + one);
  }

  /// Runs of devices that begin at the bounds: [bounds[i], bounds[i + 1]).
  void add_runs(const std::vector<int>& bounds) {
    std::vector<int> run_of(static_cast<std::size_t>(net_.devices()), -1);
    std::vector<cut> runs;
    ++partitions_;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      runs.push_back({.first = bounds[i], .last = bounds[i + 1] - 1, .partition = partitions_});
      std::fill(run_of.begin() + bounds[i], run_of.begin() + bounds[i + 1], static_cast<int>(i));
    }
    const auto run = [&](vertex_id v) {
      const auto& near = nearest_[v];
      if (near.last < 0) return -1;
      const int first = run_of[static_cast<std::size_t>(near.first)];
      return first == run_of[static_cast<std::size_t>(near.last)] ? first : -1;
    };
    for (const auto& l : net_.links()) {
      const int from = run(l.from), to = run(l.to);
      if (from == to) continue;
      if (from >= 0) runs[static_cast<std::size_t>(from)].out += reached(l);
      if (to >= 0) runs[static_cast<std::size_t>(to)].in += reached(l);
    }
    for (const auto& one : runs) add(one);
  }

  /// The first devices up to each bound.
  void add_beginnings(const std::vector<int>& bounds) {
    std::vector<double> out(static_cast<std::size_t>(net_.devices()) + 1), in = out;
    for (const auto& l : net_.links()) {
      const int from = nearest_[l.from].last, to = nearest_[l.to].last;
      if (from < 0 || to < 0 || from == to) continue;
      auto& sums = from < to ? out : in;  // the lower one alone is inside
      sums[static_cast<std::size_t>(std::min(from, to)) + 1] += reached(l).value();
      sums[static_cast<std::size_t>(std::max(from, to)) + 1] -= reached(l).value();
    }
    for (std::size_t i = 1; i < out.size(); ++i) out[i] += out[i - 1], in[i] += in[i - 1];
    for (const int end : bounds) {
      const auto i = static_cast<std::size_t>(end);
      if (end > 0) add({0, end - 1, bandwidth(out[i]), bandwidth(in[i])});
    }
  }

  std::vector<cut> take() { return std::move(cuts_); }

 private:
  bandwidth reached(const link& l) const {
    return l.capacity * shares_[static_cast<std::size_t>(l.kind)];
  }

  void add(const cut& c) {
    const int inside =
        before_[static_cast<std::size_t>(c.last) + 1] - before_[static_cast<std::size_t>(c.first)];
    if (inside > 0 && inside < before_.back()) cuts_.push_back(c);
  }

  const network& net_;
  const link_shares& shares_;
  std::vector<span_of_devices> nearest_;
  std::vector<int> before_;  ///< used devices of lower number
  int partitions_ = -1;
  std::vector<cut> cuts_;
};

/// The first device of each node, and one more than the last device. Without nodes, each device.
std::vector<int> node_bounds(const network& net) {
  std::vector<int> bounds{0};
  for (int d = 1; d < net.devices(); ++d) {
    const int node = net.node_of(d);
    if (node < 0 || node != net.node_of(d - 1)) bounds.push_back(d);
  }
  bounds.push_back(net.devices());
  return bounds;
}

std::vector<int> every(const std::vector<int>& bounds, std::size_t step) {
  std::vector<int> some;
  for (std::size_t i = 0; i + 1 < bounds.size(); i += step) some.push_back(bounds[i]);
  some.push_back(bounds.back());
  return some;
}

std::string range_name(const network& net, int first, int last) {
  const int from = net.node_of(first), to = net.node_of(last);
  if (first == last && (from < 0 || net.devices() == 1)) return net.name(net.device(first));
  const auto whole = [&](int device, int step) {
    const int beyond = device + step;
    return beyond < 0 || beyond >= net.devices() || net.node_of(beyond) != net.node_of(device);
  };
  const bool nodes = from >= 0 && to >= 0 && whole(first, -1) && whole(last, 1);
  const auto one = [&](int d, int node) {
    return nodes ? fmt::format("node{}", node) : net.name(net.device(d));
  };
  return one(first, from) == one(last, to)
             ? one(first, from)
             : fmt::format("{} to {}", one(first, from), one(last, to));
}

/// What the first of its links joins: "leaf to spine".
std::string joined_tiers(const network& net, const cut& c) {
  const auto nearest = nearest_devices(net);
  const auto inside = [&](vertex_id v) {
    return nearest[v].first >= c.first && nearest[v].last <= c.last;
  };
  for (const auto& l : net.links()) {
    if (!inside(l.from) || inside(l.to)) continue;
    const auto& from = net.vertices()[l.from];
    const auto& to = net.vertices()[l.to];
    const auto name = [](const vertex& v) { return *v.tier ? v.tier : "switch"; };
    return fmt::format("{} to {}", name(from), name(to));
  }
  return "none";
}

}  // namespace

link_shares reachable_shares(const device_profile& device) {
  const auto of = [](const transport_profile& t) {
    return std::max({t.efficiency, t.one_way_efficiency, t.collective_efficiency,
                     t.all_reduce_efficiency, t.shared_efficiency, t.collective_shared_efficiency});
  };
  link_shares shares{};
  for (std::size_t kind = 0; kind < shares.size(); ++kind) {
    for (auto driven_as = kind; driven_as < shares.size(); ++driven_as) {
      const auto& t = device.transports[driven_as];
      shares[kind] = std::max({shares[kind], of(t), t.pair ? of(*t.pair) : 0});
    }
  }
  return shares;
}

std::vector<cut> cuts_of(const network& net, const std::vector<int>& used,
                         const link_shares& shares) {
  cut_list list(net, used, shares);
  const auto nodes = node_bounds(net);
  std::vector<int> devices;
  for (int d = 0; d <= net.devices(); ++d) devices.push_back(d);
  if (nodes.size() != devices.size()) list.add_runs(devices);
  for (std::size_t step = 1; step + 1 < nodes.size(); step *= 2) list.add_runs(every(nodes, step));
  list.add_beginnings(nodes);
  return list.take();
}

std::vector<int> sizes_of_groups(const network& net) {
  std::set<int> sizes;
  const auto nearest = nearest_devices(net);
  for (vertex_id v = 0; v < nearest.size(); ++v) {
    const int size = nearest[v].last - nearest[v].first + 1;
    if (net.vertices()[v].kind == vertex_kind::switch_ && size > 1) sizes.insert(size);
  }
  return {sizes.begin(), sizes.end()};
}

std::string name_of(const network& net, const cut& c) {
  return fmt::format("the links of {} ({})", range_name(net, c.first, c.last),
                     joined_tiers(net, c));
}

}  // namespace attnsim
