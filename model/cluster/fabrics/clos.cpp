#include "model/cluster/fabrics/clos.hpp"
#include "model/spelling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace attnsim {
namespace {

constexpr int most_ports = 65536;

constexpr int divide_up(int a, int b) {
  return (a + b - 1) / b;
}

double read_ratio(const config_node& config, std::string_view key) {
  const auto ratio = config.get<double>(key, 1);
  if (ratio < 1) config.fail(key, "expected a ratio of at least 1");
  return ratio;
}

/// Ports towards the NICs of a switch whose ports meet the ratio.
int down_ports(int radix, double ratio) {
  return static_cast<int>(std::floor(radix * ratio / (1 + ratio) + 1e-9));
}

/// Links of at most `rate`, the value of `bandwidth`, that carry `total` bytes/s.
int links_for(double total, bandwidth rate, const config_node& config) {
  const double links = std::ceil(total / rate.value() - 1e-9);
  if (links > most_ports) {
    config.fail("bandwidth", fmt::format("expected at most {} uplinks a switch", most_ports));
  }
  return static_cast<int>(links);
}

bool read_routing(const config_node& config) {
  if (!config.has("routing")) return false;
  const auto name = config.get<std::string>("routing");
  if (name != "ecmp" && name != "d-mod-k") {
    config.fail("routing", expected_one_of(name, {"ecmp", "d-mod-k"}));
  }
  return name == "d-mod-k";
}

}  // namespace

clos::clos(const config_node& config, const fabric_site& site, int leaves_per_group)
    : nics_per_node_(site.nics_per_node), leaves_per_group_(leaves_per_group) {
  radix_ = config.has("radix") ? config.get_within("radix", 2, most_ports) : 0;
  by_destination_ = read_routing(config);
  rate_ = read_link_rate(config, site);
  latency_ = config.get<seconds>("latency", {});
  read_leaves(config, site);
  read_pods(config);
  check_ports(config);
  build(site);
}

void clos::read_leaves(const config_node& config, const fabric_site& site) {
  const auto ratio = read_ratio(config, "oversubscription");
  const int down = down_ports(radix_, ratio * (rate_ / site.nic_rate));
  const int nics_of_node = divide_up(nics_per_node_, leaves_per_group_);
  if (config.has("nodes_per_leaf")) {
    nodes_per_leaf_ = config.get_within("nodes_per_leaf", 1, most_ports);
  } else if (radix_ > 0) {
    nodes_per_leaf_ = down / nics_of_node;
    if (nodes_per_leaf_ == 0) {
      config.fail("radix", fmt::format("not enough ports: a leaf has {} for NICs, a node needs {}",
                                       down, nics_of_node));
    }
  } else {
    nodes_per_leaf_ = site.nodes;
  }
  nics_per_leaf_ = nodes_per_leaf_ * nics_of_node;
  leaves_ = divide_up(site.nodes, nodes_per_leaf_) * leaves_per_group_;
  const double total = nics_per_leaf_ * site.nic_rate.value() / ratio;
  uplinks_ = links_for(total, rate_, config);
  uplink_rate_ = bandwidth(total / uplinks_);
}

void clos::read_pods(const config_node& config) {
  const int levels = config.has("levels") ? config.get_within("levels", 2, 3) : 2;
  if (levels == 2) {
    for (const auto* key : {"leaves_per_pod", "core_oversubscription"}) {
      if (config.has(key)) config.fail(key, "expected only with 3 levels");
    }
    leaves_per_pod_ = leaves_;
    pods_ = 1;
    return;
  }
  const auto ratio = read_ratio(config, "core_oversubscription");
  if (radix_ > 0 && !config.has("leaves_per_pod")) {
    leaves_per_pod_ = down_ports(radix_, ratio * (rate_ / uplink_rate_));
  } else {
    leaves_per_pod_ = config.get_within("leaves_per_pod", 1, most_ports);
  }
  pods_ = divide_up(leaves_, leaves_per_pod_);
  const double total = leaves_per_pod_ * uplink_rate_.value() / ratio;
  core_uplinks_ = links_for(total, rate_, config);
  core_rate_ = bandwidth(total / core_uplinks_);
}

void clos::check_ports(const config_node& config) const {
  if (radix_ == 0) return;
  const auto need = [&](const char* what, int ports) {
    if (ports <= radix_) return;
    config.fail("radix", fmt::format("not enough ports: {} needs {}", what, ports));
  };
  need("a leaf", nics_per_leaf_ + uplinks_);
  need("a spine", core_uplinks_ + std::min(leaves_per_pod_, leaves_));
  need("a core", pods_);
}

void clos::build(const fabric_site& site) {
  auto& net = site.net;
  const auto next_link = [&] { return static_cast<link_id>(net.links().size()); };
  std::vector<vertex_id> leaves, spines;
  for (int i = 0; i < leaves_; ++i) leaves.push_back(net.add_switch("leaf"));
  nics_ = nic_links(site, [&](int nic) { return leaves[static_cast<std::size_t>(leaf_of(nic))]; });
  first_uplink_ = next_link();
  if (leaves_ == 1) return;
  for (std::int64_t i = 0; i < std::int64_t{pods_} * uplinks_; ++i) {
    spines.push_back(net.add_switch("spine"));
  }
  for (std::int64_t i = 0; i < std::int64_t{leaves_} * uplinks_; ++i) {
    const auto leaf = i / uplinks_, spine = leaf / leaves_per_pod_ * uplinks_ + i % uplinks_;
    net.add_duplex(leaves[static_cast<std::size_t>(leaf)], spines[static_cast<std::size_t>(spine)],
                   uplink_rate_, latency_, link_kind::network);
  }
  first_core_ = next_link();
  if (pods_ == 1) return;
  std::vector<vertex_id> cores;
  for (std::int64_t i = 0; i < std::int64_t{uplinks_} * core_uplinks_; ++i) {
    cores.push_back(net.add_switch("core"));
  }
  for (std::int64_t i = 0; i < std::int64_t{pods_} * uplinks_ * core_uplinks_; ++i) {
    net.add_duplex(spines[static_cast<std::size_t>(i / core_uplinks_)],
                   cores[static_cast<std::size_t>(i) % cores.size()], core_rate_, latency_,
                   link_kind::network);
  }
}

void clos::route(int from, int to, std::uint64_t flow, std::vector<link_id>& path) const {
  path.push_back(nics_.up(from));
  const int a = leaf_of(from), b = leaf_of(to);
  if (a != b) {
    const auto choice = by_destination_ ? number_on_leaves(to) : flow;
    const int spine = static_cast<int>(choice % static_cast<std::uint64_t>(uplinks_));
    const auto uplink = [&](int leaf) {
      return first_uplink_ + 2 * static_cast<link_id>(leaf * uplinks_ + spine);
    };
    const int pod_a = a / leaves_per_pod_, pod_b = b / leaves_per_pod_;
    path.push_back(uplink(a));
    if (pod_a != pod_b) {
      const auto rest = choice / static_cast<std::uint64_t>(uplinks_);
      const int core = static_cast<int>(rest % static_cast<std::uint64_t>(core_uplinks_));
      const auto core_link = [&](int pod) {
        const int number = (pod * uplinks_ + spine) * core_uplinks_ + core;
        return first_core_ + 2 * static_cast<link_id>(number);
      };
      path.push_back(core_link(pod_a));
      path.push_back(core_link(pod_b) + 1);
    }
    path.push_back(uplink(b) + 1);
  }
  path.push_back(nics_.down(to));
}

}  // namespace attnsim
