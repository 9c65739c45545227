#include "model/cost/collective.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/error.hpp"
#include "model/rings.hpp"
#include "model/trees.hpp"

namespace attnsim {
namespace {

std::vector<link_use> merged(std::vector<link_use> uses) {
  std::sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.link < b.link; });
  std::vector<link_use> result;
  for (const auto& use : uses) {
    if (!result.empty() && result.back().link == use.link) {
      result.back().weight += use.weight;
    } else {
      result.push_back(use);
    }
  }
  return result;
}

/// Notes the messages of a stage and adds them up to one flow.
class stage_builder {
 public:
  explicit stage_builder(const cluster& c) : cluster_(c) {}

  /// A message that moves `weight` bytes for every byte of the flow.
  void add_message(int from, int to, double weight) {
    path_.clear();
    cluster_.network.route(from, to, path_);
    seconds latency;
    for (const auto id : path_) {
      uses_.push_back({id, weight});
      latency += cluster_.network.links()[id].latency;
    }
    slowest_hop_ = std::max(slowest_hop_, latency);
    kind_ = std::max(kind_, transport_of(cluster_.network, path_));
  }

  const transport_profile& transport() const { return cluster_.device.transport(kind_); }
  seconds slowest_hop() const { return slowest_hop_; }

  collective_flow finish(const flow_latency& latency, double efficiency, double bytes) {
    collective_flow flow{merged(std::move(uses_)), latency, kind_, bytes};
    flow.take_shares(cluster_.network, transport(), efficiency);
    return flow;
  }

 private:
  const cluster& cluster_;
  std::vector<link_use> uses_;
  std::vector<link_id> path_;
  seconds slowest_hop_;
  link_kind kind_ = link_kind::nvlink;
};

/// Flows of equal size that run at once and alike, as one.
collective_flow together(std::vector<collective_flow> flows) {
  collective_flow all = flows.front();
  for (std::size_t i = 1; i < flows.size(); ++i) {
    all.uses.insert(all.uses.end(), flows[i].uses.begin(), flows[i].uses.end());
    all.latency = std::max(all.latency, flows[i].latency);
    all.transport = std::max(all.transport, flows[i].transport);
    all.rate_limit = std::min(all.rate_limit, flows[i].rate_limit);
  }
  all.uses = merged(std::move(all.uses));
  return all;
}

/// The same stage in every group; none in groups of one.
template <typename Flow>
void add_stage(std::vector<collective_flow>& stages, const std::vector<std::vector<int>>& groups,
               Flow flow) {
  if (groups.front().size() < 2) return;
  std::vector<collective_flow> flows;
  for (const auto& group : groups) flows.push_back(flow(group));
  stages.push_back(together(std::move(flows)));
}

std::vector<collective_flow> hierarchical(const cluster& c, collective_kind kind,
                                          const node_groups& groups, double bytes) {
  const double g = static_cast<double>(groups.rails.size());
  const double m = static_cast<double>(groups.nodes.size());
  const auto ring = [&](double sent, int rounds) {
    return [&c, sent, rounds](const std::vector<int>& group) {
      return ring_flow(c, group, rounds, sent);
    };
  };
  const auto pairs = [&](double sent) {
    return [&c, sent](const std::vector<int>& group) { return pairs_flow(c, group, sent); };
  };
  const double within = bytes * (g - 1) / g, along = bytes * (m - 1) / m;
  std::vector<collective_flow> stages;
  switch (kind) {
    case collective_kind::all_gather:
      add_stage(stages, groups.rails, ring(along / g, 1));
      add_stage(stages, groups.nodes, ring(within, 1));
      break;
    case collective_kind::reduce_scatter:
      add_stage(stages, groups.nodes, ring(within, 1));
      add_stage(stages, groups.rails, ring(along / g, 1));
      break;
    case collective_kind::all_reduce:
      add_stage(stages, groups.nodes, ring(within, 1));
      add_stage(stages, groups.rails, ring(2 * along / g, 2));
      add_stage(stages, groups.nodes, ring(within, 1));
      break;
    case collective_kind::all_to_all:
      add_stage(stages, groups.nodes, pairs(within));
      add_stage(stages, groups.rails, pairs(along));
      break;
  }
  return stages;
}

}  // namespace

void collective_flow::take_shares(const network& net, const transport_profile& t,
                                  double efficiency) {
  for (auto& use : uses) {
    const auto capacity = net.links()[use.link].capacity;
    const double alone = t.limited(efficiency, capacity);
    if (t.shared_efficiency > alone)
      rate_limit = std::min(rate_limit, alone * capacity.value() / use.weight);
    use.weight /= std::max(alone, t.shared_efficiency);
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

collective_flow ring_flow(const cluster& c, std::vector<int> devices, int rounds, double bytes) {
  const double steps = rounds * (static_cast<double>(devices.size()) - 1);
  std::sort(devices.begin(), devices.end());
  stage_builder stage(c);
  const auto channels = ring_channels(c.network, devices);
  for (const auto& ring : channels) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      stage.add_message(ring[i], ring[(i + 1) % ring.size()],
                        1.0 / static_cast<double>(channels.size()));
    }
  }
  const auto& t = stage.transport();
  return stage.finish({t.collective_latency + steps * (t.step_latency + stage.slowest_hop()),
                       rounds > 1 ? t.all_reduce_ramp : t.collective_ramp},
                      rounds > 1 ? t.all_reduce_efficiency : t.collective_efficiency, bytes);
}

collective_flow pairs_flow(const cluster& c, const std::vector<int>& devices, double bytes) {
  stage_builder stage(c);
  for (const int from : devices) {
    for (const int to : devices) {
      if (from != to) stage.add_message(from, to, 1 / static_cast<double>(devices.size() - 1));
    }
  }
  const auto& t = stage.transport();
  return stage.finish({t.collective_latency + stage.slowest_hop(), t.ramp}, t.efficiency, bytes);
}

collective_flow tree_flow(const cluster& c, const std::vector<int>& devices, double bytes) {
  stage_builder stage(c);
  const auto channels = tree_channels(c.network, devices);
  int depth = 0;
  for (const auto& tree : channels) {
    depth = std::max(depth, tree.depth);
    for (const auto& [child, parent] : tree.edges) {
      stage.add_message(child, parent, 1.0 / static_cast<double>(channels.size()));
      stage.add_message(parent, child, 1.0 / static_cast<double>(channels.size()));
    }
  }
  const auto& t = stage.transport();
  const auto steps = 2.0 * static_cast<double>(depth);
  return stage.finish(
      {t.collective_latency + steps * (t.step_latency + stage.slowest_hop()), t.all_reduce_ramp},
      t.all_reduce_efficiency, bytes);
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
