// The cluster file of emulated hosts, from what the link probe measured and nothing else: rates of
// exchanges, as every schedule sends and receives at once, and the latency of one message.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tests/hosts/link_probe.hpp"

namespace attnsim::hosts {

/// Rails work together: what each does alone is not needed.
inline std::vector<link_kind> kinds_needed(const host_network& n) {
  auto kinds = link_kinds(n);
  std::erase_if(kinds, [&](const auto& k) { return static_cast<int>(k.rails.size()) < n.rails; });
  return kinds;
}

/// The measurement of "leaf" or "core", over all rails where there are several.
inline const link_measurement& measured(const std::vector<link_measurement>& links,
                                        const std::string& place, int rails) {
  const auto name = rails > 1 ? place + " all rails" : place;
  const auto found =
      std::find_if(links.begin(), links.end(), [&](const auto& l) { return l.kind.name == name; });
  if (found == links.end()) throw std::logic_error("no measurement of " + name);
  return *found;
}

/// A cable at half the message's latency, so that two in a row have all of it; those between
/// switches have none.
inline std::string cable_line(const std::string& from, const std::string& to, const link_fit& rate,
                              seconds latency) {
  return fmt::format(
      "  - {{from: {}, to: {}, bandwidth: {:.0f} B/s, latency: {:.3f} us, duplex: true}}\n", from,
      to, rate.rate.value(), latency.value() * 1e6);
}

/// `device`: the profile, as a YAML map.
inline std::string cluster_of(const host_network& n, const std::vector<link_measurement>& links,
                              const std::string& device) {
  const int per_leaf = n.hosts_per_leaf ? n.hosts_per_leaf : n.hosts;
  const int leaves = (n.hosts + per_leaf - 1) / per_leaf;
  const auto& leaf = measured(links, "leaf", n.rails);
  const auto half = std::max(seconds(), leaf.one_way_fit.latency) / 2.0;
  std::string vertices, cables;
  for (int h = 0; h < n.hosts; ++h) {
    vertices += fmt::format("  - {{name: h{0}, kind: device, node: {0}}}\n", h);
    cables += cable_line(fmt::format("h{}", h), fmt::format("leaf{}", h / per_leaf),
                         leaf.both_ways_fit, half);
  }
  for (int l = 0; l < leaves; ++l)
    vertices += fmt::format("  - {{name: leaf{}, kind: switch}}\n", l);
  if (leaves > 1) {
    vertices += "  - {name: root, kind: switch}\n";
    const auto& core = measured(links, "core", n.rails);
    for (int l = 0; l < leaves; ++l) {
      cables += cable_line(fmt::format("leaf{}", l), "root", core.both_ways_fit, seconds());
    }
  }
  return fmt::format("name: emulated-hosts\ndevice: {}\ngraph:\n  vertices:\n{}  links:\n{}",
                     device, vertices, cables);
}

}  // namespace attnsim::hosts
