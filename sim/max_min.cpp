#include "sim/max_min.hpp"

#include <algorithm>

namespace attnsim {
namespace {

constexpr double nearly = 1 + 1e-12;

struct link_state {
  double room;            // capacity not taken by stopped flows
  double weight = 0;      // of the flows still growing
  std::size_t flows = 0;  // how many of them

  double level() const { return flows == 0 ? unlimited : room / weight; }
};

struct filling {
  std::vector<link_state> links;
  std::vector<flow_demand> growing;
  std::vector<std::size_t> names;  // of the growing flows
  std::vector<double> rates;

  filling(std::span<const double> capacities, std::span<const flow_demand> flows)
      : rates(flows.size(), unlimited) {
    for (const double capacity : capacities) links.push_back({capacity});
    for (std::size_t name = 0; name < flows.size(); ++name) {
      require_rate_limit(flows[name].rate_limit);
      growing.push_back({merged_path(flows[name].path, links.size()), flows[name].rate_limit});
      names.push_back(name);
      for (const link_use& use : growing.back().path) {
        links[use.link].weight += use.weight;
        ++links[use.link].flows;
      }
    }
  }

  double next_level() const {
    double level = unlimited;
    for (const link_state& link : links) level = std::min(level, link.level());
    for (const flow_demand& flow : growing) level = std::min(level, flow.rate_limit);
    return level;
  }

  void stop_flows(double level) {
    std::vector<bool> full;
    for (const link_state& link : links) full.push_back(link.level() <= level * nearly);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < growing.size(); ++i) {
      const bool stops = growing[i].rate_limit <= level * nearly ||
                         std::any_of(growing[i].path.begin(), growing[i].path.end(),
                                     [&](link_use use) { return full[use.link]; });
      if (stops) {
        rates[names[i]] = level;
        for (const link_use& use : growing[i].path) leave(links[use.link], use.weight, level);
      } else {
        std::swap(growing[kept], growing[i]);
        names[kept++] = names[i];
      }
    }
    growing.resize(kept);
    names.resize(kept);
  }

  static void leave(link_state& link, double weight, double level) {
    link.room -= weight * level;
    link.weight -= weight;
    --link.flows;
  }
};

}  // namespace

std::vector<double> max_min_rates(std::span<const double> capacities,
                                  std::span<const flow_demand> flows) {
  require_capacities(capacities);
  filling state(capacities, flows);
  for (double level = state.next_level(); level < unlimited; level = state.next_level()) {
    state.stop_flows(level);
  }
  return state.rates;
}

}  // namespace attnsim
