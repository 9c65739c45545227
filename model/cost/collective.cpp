#include "model/cost/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "model/cluster/rings.hpp"
#include "model/cluster/trees.hpp"
#include "model/error.hpp"

namespace attnsim {
namespace {

/// Adds weights up by link. One object serves many sums: its room for every link of the network is made once.
class link_sums {
 public:
  explicit link_sums(const network& net) : sums_(net.links().size()) {}

  void add(const link_use& use) {
    if (sums_[use.link] == 0) used_.push_back(use.link);
    sums_[use.link] += use.weight;
  }

  /// The sums by ascending link; starts afresh.
  std::vector<link_use> take() {
    std::sort(used_.begin(), used_.end());
    std::vector<link_use> result;
    for (const auto link : used_) result.push_back({link, std::exchange(sums_[link], 0)});
    used_.clear();
    return result;
  }

 private:
  std::vector<double> sums_;
  std::vector<link_id> used_;
};

/// Notes the messages of a group in a stage and adds them up to one flow; then those of the next group.
class stage_builder {
 public:
  explicit stage_builder(const cluster& c) : cluster_(c), sums_(c.network) {}

  /// A message that moves `weight` bytes for every byte of the flow; the latency of its links.
  seconds add_message(int from, int to, double weight) {
    path_.clear();
    cluster_.network.route(from, to, path_);
    seconds latency;
    for (const auto id : path_) {
      sums_.add({id, weight});
      latency += cluster_.network.links()[id].latency;
    }
    slowest_hop_ = std::max(slowest_hop_, latency);
    kind_ = std::max(kind_, transport_of(cluster_.network, path_));
    return latency;
  }

  const attnsim::network& network() const { return cluster_.network; }
  const transport_profile& transport() const { return cluster_.device.transport(kind_); }
  seconds slowest_hop() const { return slowest_hop_; }

  collective_flow finish(const flow_latency& latency, double efficiency, double shared,
                         double bytes) {
    collective_flow flow{sums_.take(), latency, kind_, bytes};
    flow.take_shares(cluster_.network, transport(), efficiency, shared);
    slowest_hop_ = {};
    kind_ = link_kind::nvlink;
    return flow;
  }

 private:
  const cluster& cluster_;
  link_sums sums_;
  std::vector<link_id> path_;
  seconds slowest_hop_;
  link_kind kind_ = link_kind::nvlink;
};

collective_flow ring_flow(stage_builder& stage, std::vector<int> devices, int rounds,
                          double bytes) {
  const double steps = static_cast<double>(devices.size()) - 1;
  std::sort(devices.begin(), devices.end());
  const auto channels = ring_channels(stage.network(), devices);
  seconds longest;  // of what a piece passes on its way round, all hops but one
  for (const auto& ring : channels) {
    seconds all, least(std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const auto hop = stage.add_message(ring[i], ring[(i + 1) % ring.size()],
                                         1.0 / static_cast<double>(channels.size()));
      all += hop;
      least = std::min(least, hop);
    }
    longest = std::max(longest, all - least);
  }
  const auto& t = stage.transport().among(devices.size());
  return stage.finish({t.collective_latency + rounds * (steps * t.step_latency + longest),
                       rounds > 1 ? t.all_reduce_ramp : t.collective_ramp},
                      rounds > 1 ? t.all_reduce_efficiency : t.collective_efficiency,
                      t.collective_shared_efficiency, bytes);
}

collective_flow pairs_flow(stage_builder& stage, const std::vector<int>& devices, double bytes) {
  for (const int from : devices) {
    for (const int to : devices) {
      if (from != to) stage.add_message(from, to, 1 / static_cast<double>(devices.size() - 1));
    }
  }
  const auto& t = stage.transport();
  auto flow = stage.finish({t.latency + stage.slowest_hop(), t.ramp}, t.efficiency,
                           t.shared_efficiency, bytes);
  for (auto& use : flow.uses) {
    if (is_device_pcie(stage.network(), use.link)) use.weight *= t.crowded(devices.size());
  }
  return flow;
}

/// None for groups of one.
template <typename Flow>
std::vector<collective_flow> flow_of_each(const device_groups& groups, Flow flow) {
  std::vector<collective_flow> flows;
  for (const auto& group : groups) {
    if (group.size() > 1) flows.push_back(flow(group));
  }
  return flows;
}

/// Flows of equal size that run at once and alike, as one.
collective_flow together(const network& net, const std::vector<collective_flow>& flows) {
  auto all = flows.front();
  link_sums sums(net);
  for (const auto& flow : flows) {
    for (const auto& use : flow.uses) sums.add(use);
    all.latency = std::max(all.latency, flow.latency);
    all.transport = std::max(all.transport, flow.transport);
    all.rate_limit = std::min(all.rate_limit, flow.rate_limit);
  }
  all.uses = sums.take();
  return all;
}

std::vector<collective_flow> hierarchical(const cluster& c, collective_kind kind,
                                          const node_groups& groups, double bytes) {
  const double g = static_cast<double>(groups.rails.size());
  const double m = static_cast<double>(groups.nodes.size());
  const double within = bytes * (g - 1) / g, along = bytes * (m - 1) / m;
  std::vector<collective_flow> stages;
  const auto add = [&](const std::vector<collective_flow>& flows) {
    if (!flows.empty()) stages.push_back(together(c.network, flows));
  };
  switch (kind) {
    case collective_kind::all_gather:
      add(ring_flows(c, groups.rails, 1, along / g));
      add(ring_flows(c, groups.nodes, 1, within));
      break;
    case collective_kind::reduce_scatter:
      add(ring_flows(c, groups.nodes, 1, within));
      add(ring_flows(c, groups.rails, 1, along / g));
      break;
    case collective_kind::all_reduce:
      add(ring_flows(c, groups.nodes, 1, within));
      add(ring_flows(c, groups.rails, 2, 2 * along / g));
      add(ring_flows(c, groups.nodes, 1, within));
      break;
    case collective_kind::all_to_all:
      add(pairs_flows(c, groups.nodes, within));
      add(pairs_flows(c, groups.rails, along));
      break;
  }
  return stages;
}

}  // namespace

void collective_flow::take_shares(const network& net, const transport_profile& t, double efficiency,
                                  double shared) {
  for (auto& use : uses) {
    const auto capacity = net.links()[use.link].capacity;
    const double alone = t.limited(efficiency, capacity);
    if (shared > alone) rate_limit = std::min(rate_limit, alone * capacity.value() / use.weight);
    use.weight /= std::max(alone, shared);
  }
}

double collective_flow::seconds_a_byte(const network& net) const {
  double slowest = 1 / rate_limit;
  for (const auto& use : uses)
    slowest = std::max(slowest, use.weight / net.links()[use.link].capacity.value());
  return slowest;
}

link_kind transport_between(const cluster& c, std::span<const int> devices) {
  auto kind = link_kind::nvlink;
  std::vector<link_id> path;
  for (std::size_t i = 1; i < devices.size(); ++i) {
    path.clear();
    c.network.route(devices[i - 1], devices[i], path);
    kind = std::max(kind, transport_of(c.network, path));
  }
  return kind;
}

collective_flow ring_flow(const cluster& c, const std::vector<int>& devices, int rounds,
                          double bytes) {
  stage_builder stage(c);
  return ring_flow(stage, devices, rounds, bytes);
}

std::vector<collective_flow> ring_flows(const cluster& c, const device_groups& groups, int rounds,
                                        double bytes) {
  stage_builder stage(c);
  return flow_of_each(groups,
                      [&](const auto& group) { return ring_flow(stage, group, rounds, bytes); });
}

collective_flow pairs_flow(const cluster& c, const std::vector<int>& devices, double bytes) {
  stage_builder stage(c);
  return pairs_flow(stage, devices, bytes);
}

std::vector<collective_flow> pairs_flows(const cluster& c, const device_groups& groups,
                                         double bytes) {
  stage_builder stage(c);
  return flow_of_each(groups, [&](const auto& group) { return pairs_flow(stage, group, bytes); });
}

collective_flow tree_flow(const cluster& c, const std::vector<int>& devices, double bytes) {
  stage_builder stage(c);
  const auto channels = tree_channels(c.network, devices);
  const double share = 1 / static_cast<double>(channels.size());
  int deepest = 0;
  seconds longest;
  for (const auto& tree : channels) {
    std::map<int, seconds> from_root;  // of the links, by device
    for (const auto& [child, parent] : tree.edges) {
      const auto up = stage.add_message(child, parent, share);
      const auto down = stage.add_message(parent, child, share);
      from_root[child] = from_root[parent] + up + down;
      longest = std::max(longest, from_root[child]);
    }
    deepest = std::max(deepest, tree.depth);
  }
  const auto& t = stage.transport();
  return stage.finish(
      {t.collective_latency + 2.0 * deepest * t.step_latency + longest, t.all_reduce_ramp},
      t.all_reduce_efficiency, t.collective_shared_efficiency, bytes);
}

node_groups groups_of(const network& net, const std::vector<int>& devices) {
  node_groups groups{.nodes = by_node(net, devices), .rails = {}};
  groups.rails.resize(groups.nodes.front().size());
  for (const auto& node : groups.nodes) {
    if (node.size() != groups.rails.size()) {
      throw infeasible(
          fmt::format("hierarchical collective: nodes take part with {} and {} devices; feasible: "
                      "equal numbers",
                      groups.rails.size(), node.size()));
    }
    for (std::size_t k = 0; k < node.size(); ++k) groups.rails[k].push_back(node[k]);
  }
  return groups;
}

std::vector<collective_flow> stages(const cluster& c, const collective& what,
                                    const std::vector<int>& devices, double bytes) {
  const int n = static_cast<int>(devices.size());
  if (n < 2) return {};
  const double others = bytes * (n - 1) / n;
  const bool all_reduce = what.kind == collective_kind::all_reduce;
  const bool all_to_all = what.kind == collective_kind::all_to_all;
  switch (what.algorithm) {
    case collective_algorithm::hierarchical:
      return hierarchical(c, what.kind, groups_of(c.network, devices), bytes);
    case collective_algorithm::ring:
      if (all_to_all) break;
      return {ring_flow(c, devices, all_reduce ? 2 : 1, (all_reduce ? 2 : 1) * others)};
    case collective_algorithm::tree:
      if (!all_reduce) break;
      return {tree_flow(c, devices, bytes)};
    case collective_algorithm::pairs:
      if (!all_to_all) break;
      return {pairs_flow(c, devices, others)};
  }
  throw infeasible(
      "collective: expected ring or hierarchical, tree for all-reduce only, pairs or "
      "hierarchical for all-to-all");
}

seconds time_alone(const cluster& c, std::span<const collective_flow> stages) {
  seconds total;
  for (const auto& stage : stages) {
    total += stage.latency.of(stage.bytes) + seconds(stage.bytes * stage.seconds_a_byte(c.network));
  }
  return total;
}

}  // namespace attnsim
