#include "formats/combine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "formats/hardware.hpp"
#include "formats/levels.hpp"

namespace attnsim::formats {
namespace {

constexpr std::string_view assumed_domain_device = "b200";  ///< NVLink domains of several hosts

/// Equal but for the names of parts.
bool alike(const topology& a, const topology& b) {
  const auto same_part = [](const part& p, const part& q) { return p.kind == q.kind; };
  const auto same_cable = [](const cable& p, const cable& q) {
    return std::tie(p.from, p.to, p.rate, p.latency, p.kind, p.duplex) ==
           std::tie(q.from, q.to, q.rate, q.latency, q.kind, q.duplex);
  };
  return a.nic_rate == b.nic_rate &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(), same_part) &&
         std::equal(a.cables.begin(), a.cables.end(), b.cables.begin(), b.cables.end(), same_cable);
}

/// Adds the parts of `from` under names that begin with `prefix`; what place each got.
std::vector<std::size_t> copy_parts(const topology& from, const std::string& prefix, int node,
                                    topology& to) {
  std::vector<std::size_t> place;
  for (const auto& p : from.parts) place.push_back(to.add(p.kind, prefix + p.name, node));
  return place;
}

void copy_cables(const topology& from, const std::vector<std::size_t>& place, topology& to) {
  for (const auto& c : from.cables) {
    to.join(place[c.from], place[c.to], c.rate, c.latency, c.kind, c.duplex);
  }
}

std::vector<topology> split_nodes(const std::vector<topology>& files) {
  std::vector<topology> nodes;
  for (const auto& file : files) {
    for (int n = 0; n < file.nodes(); ++n) nodes.push_back(file.node(n));
  }
  return nodes;
}

/// Nodes that differ, joined by one switch that never limits.
topology join_different(const std::vector<topology>& nodes) {
  const auto& known = known_hardware();
  topology all{.what = scope::cluster,
               .device = nodes.front().device,
               .device_doubt = nodes.front().device_doubt};
  const auto hub = all.add(part_kind::switch_, "switch0");
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto place = copy_parts(nodes[n], fmt::format("node{}.", n), static_cast<int>(n), all);
    copy_cables(nodes[n], place, all);
    if (nodes[n].count(part_kind::nic) == 0) {
      throw input_error("the files describe different nodes, and one has no NIC to join them by");
    }
    for (const auto nic : nodes[n].all(part_kind::nic)) {
      all.join(place[nic], hub, nodes[n].nic_rate, known.nic_latency, link_kind::network);
    }
  }
  return all;
}

machine combine_nodes(const std::vector<topology>& files) {
  machine m;
  auto nodes = split_nodes(files);
  for (const auto& node : nodes) m.said.add(node.said);
  const bool same = std::all_of(nodes.begin(), nodes.end(),
                                [&](const auto& node) { return alike(node, nodes.front()); });
  if (same) {
    m.nodes = static_cast<int>(nodes.size());
    m.inside = std::move(nodes.front());
  } else {
    m.inside = join_different(nodes);
    m.said.assumed.push_back(
        fmt::format("the {} nodes differ: joined by one switch that never limits", nodes.size()));
  }
  return m;
}

/// Joins the hosts of a fabric file to the NICs of nodes.
class fabric_builder {
 public:
  fabric_builder(const topology& file, const topology* node, const settings& given)
      : file_(file), given_(given), known_(known_hardware()), cables_(cables_of_parts(file)) {
    m_.said = file.said;
    for (const auto h : file.all(part_kind::host)) {
      most_cables_of_host_ = std::max(most_cables_of_host_, cables_[h].size());
    }
    group_hosts();
    host_ = node != nullptr ? *node : assumed_host();
    if (host_.nic_rate == bandwidth{}) assume_nic_rate();
    if (node != nullptr) m_.said.add(node->said);
  }

  machine build() {
    m_.nodes = static_cast<int>(groups_.size());
    for (const auto& hosts : groups_) {
      auto& names = m_.names.emplace_back();
      for (const auto h : hosts) names += (names.empty() ? "" : ", ") + file_.parts[h].name;
    }
    build_inside();
    build_fabric();
    return std::move(m_);
  }

 private:
  void assume(const std::string& line) { m_.said.assumed.push_back(line); }
  void miss(const std::string& line) { m_.said.missing.push_back(line); }

  /// NVLink domains of equal size are nodes; else every host is one.
  void group_hosts() {
    std::map<int, std::vector<std::size_t>> domains;
    for (const auto h : file_.all(part_kind::host)) domains[file_.parts[h].node].push_back(h);
    const bool equal = std::all_of(domains.begin(), domains.end(), [&](const auto& d) {
      return d.first >= 0 && d.second.size() == domains.begin()->second.size();
    });
    if (equal) {
      for (const auto& [number, hosts] : domains) groups_.push_back(hosts);
      return;
    }
    for (const auto h : file_.all(part_kind::host)) groups_.push_back({h});
    if (domains.rbegin()->first >= 0) {
      miss("NVLink between hosts: the domains of the file differ in size; every host is a node");
    }
  }

  bool joined_by_nvlink() const { return groups_.front().size() > 1; }

  const known_device& device() const {
    if (!given_.device.empty()) return known_.by_profile(given_.device);
    return joined_by_nvlink() ? known_.by_profile(assumed_domain_device) : known_.devices.front();
  }

  topology assumed_host() {
    const auto cables = std::max<std::size_t>(1, most_cables_of_host_);
    const auto devices =
        given_.devices_per_host > 0 ? static_cast<std::size_t>(given_.devices_per_host) : cables;
    topology host{.what = scope::node, .device = given_.device, .nic_rate = given_.nic_rate};
    const auto& d = device();
    const auto rate = pcie_rate(d.pcie, 16);
    for (std::size_t i = 0; i < devices; ++i) {
      host.add(part_kind::device, fmt::format("gpu{}", i), 0);
    }
    for (std::size_t i = 0; i < cables; ++i) {
      const auto nic = host.add(part_kind::nic, fmt::format("nic{}", i), 0);
      for (auto g = i * devices / cables;
           g < std::max((i + 1) * devices / cables, i * devices / cables + 1); ++g) {
        host.join(g, nic, rate, known_.pcie_latency, link_kind::pcie);
      }
    }
    miss("what a host holds: a node's file beside this one, --devices-per-host, --device");
    assume(fmt::format("a host has {} and {}", counted(devices, "device"), counted(cables, "NIC")));
    if (devices > 1 || joined_by_nvlink()) add_nvswitch(host);
    return host;
  }

  void add_nvswitch(topology& node) {
    const auto& d = device();
    const auto rate = d.nvlink_rate * d.nvlinks;
    const auto hub = node.add(part_kind::switch_, "nvswitch0", 0);
    for (const auto g : node.all(part_kind::device)) {
      node.join(g, hub, rate, known_.nvlink_latency / 2, link_kind::nvlink);
    }
    assume(fmt::format("NVLink of {} joins the devices of a node: {}", d.name, to_string(rate)));
  }

  void assume_nic_rate() {
    for (const auto& c : file_.cables) {
      if (file_.parts[c.from].kind == part_kind::host || file_.parts[c.to].kind == part_kind::host)
        host_.nic_rate = std::max(host_.nic_rate, c.rate);
    }
    if (host_.nic_rate > bandwidth{}) return;
    host_.nic_rate =
        given_.nic_rate > bandwidth{} ? given_.nic_rate : known_.nic_rate(device().pcie);
    if (given_.nic_rate > bandwidth{}) return;
    miss("speed of the NICs: --nic-bandwidth");
    assume(fmt::format("NICs of {}", to_string(host_.nic_rate)));
  }

  /// A node of several hosts: their devices and NICs, and one NVSwitch for all.
  void build_inside() {
    if (!joined_by_nvlink()) {
      m_.inside = host_;
      return;
    }
    topology node{.what = scope::node,
                  .device = host_.device,
                  .device_doubt = host_.device_doubt,
                  .nic_rate = host_.nic_rate};
    std::optional<std::size_t> hub;
    for (std::size_t h = 0; h < groups_.front().size(); ++h) {
      std::vector<std::size_t> place;
      for (const auto& p : host_.parts) {
        const bool is_hub = p.kind == part_kind::switch_ && p.name.starts_with("nvswitch");
        if (is_hub && hub) {
          place.push_back(*hub);
          continue;
        }
        place.push_back(node.add(p.kind, is_hub ? p.name : fmt::format("host{}.{}", h, p.name), 0));
        if (is_hub) hub = place.back();
      }
      copy_cables(host_, place, node);
    }
    if (!hub) add_nvswitch(node);
    m_.inside = std::move(node);
  }

  void build_fabric() {
    topology net{.what = scope::fabric};
    std::vector<std::size_t> place(file_.parts.size());
    for (const auto s : file_.all(part_kind::switch_)) {
      place[s] = net.add(part_kind::switch_, file_.parts[s].name);
    }
    const auto nics_per_host = host_.count(part_kind::nic);
    if (nics_per_host == 0) throw input_error("the node's file has no NIC to join the fabric by");
    std::size_t short_of_cables = 0;
    for (std::size_t n = 0; n < groups_.size(); ++n) {
      std::size_t number = 0;
      for (const auto host : groups_[n]) {
        if (cables_[host].empty()) return;  // a file that tells NVLink domains alone
        short_of_cables += cables_[host].size() < most_cables_of_host_;
        for (std::size_t i = 0; i < nics_per_host; ++i) {
          const auto& c = file_.cables[cables_[host][i % cables_[host].size()]];
          const auto nic = net.add(part_kind::nic, fmt::format("node{}.nic{}", n, number++));
          net.join(nic, place[c.from == host ? c.to : c.from],
                   c.rate > bandwidth{} ? c.rate : host_.nic_rate, known_.nic_latency,
                   link_kind::network);
        }
      }
    }
    for (const auto& c : file_.cables) {
      if (file_.parts[c.from].kind != part_kind::switch_ ||
          file_.parts[c.to].kind != part_kind::switch_)
        continue;
      net.join(place[c.from], place[c.to], c.rate, known_.switch_latency, link_kind::network);
    }
    if (short_of_cables > 0) {
      m_.said.warnings.push_back(
          fmt::format("{} have fewer than {} cables: their NICs are given the same switches again",
                      counted(short_of_cables, "host"), most_cables_of_host_));
    }
    fill_rates(net);
    m_.fabric = std::move(net);
  }

  /// Links between switches without a rate carry together what comes from below.
  void fill_rates(topology& net) {
    const auto cables = cables_of_parts(net);
    const auto level = levels_above(net, net.all(part_kind::nic));
    std::vector<std::size_t> order = net.all(part_kind::switch_);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return level[a] < level[b]; });
    bool filled = false;
    for (const auto s : order) {
      bandwidth below;
      std::vector<std::size_t> up;
      for (const auto i : cables[s]) {
        const auto& c = net.cables[i];
        const auto other = c.from == s ? c.to : c.from;
        if (level[other] < level[s]) below += c.rate;
        if (level[other] >= level[s] && c.rate == bandwidth{}) up.push_back(i);
      }
      for (const auto i : up) {
        net.cables[i].rate = std::max(below, host_.nic_rate) / static_cast<double>(up.size());
      }
      filled = filled || !up.empty();
    }
    if (filled) {
      miss("rates of the links between switches");
      assume(
          "a switch's links to the switches above carry together what comes from below: no "
          "oversubscription");
    }
  }

  const topology& file_;
  const settings& given_;
  const hardware& known_;
  std::vector<std::vector<std::size_t>> cables_;
  std::vector<std::vector<std::size_t>> groups_;  ///< hosts by node
  std::size_t most_cables_of_host_ = 0;
  topology host_;
  machine m_;
};

machine combine_files(std::vector<topology> files, const settings& given) {
  std::vector<topology> nodes, fabrics, clusters;
  for (auto& file : files) {
    auto& list = file.what == scope::node ? nodes : file.what == scope::fabric ? fabrics : clusters;
    list.push_back(std::move(file));
  }
  if (fabrics.size() > 1) throw input_error("expected one file of a fabric at most");
  if (clusters.size() + (nodes.empty() ? 0 : 1) > 1) {
    throw input_error("expected one file that describes a whole cluster, and no others beside it");
  }
  if (fabrics.empty() && !clusters.empty()) {
    machine m;
    m.said = clusters.front().said;
    m.inside = std::move(clusters.front());
    return m;
  }
  if (!clusters.empty()) nodes.push_back(clusters.front().node(0));
  if (fabrics.empty()) return combine_nodes(nodes);
  if (fabrics.front().count(part_kind::host) == 0) {
    throw input_error("the fabric's file has no hosts");
  }
  if (nodes.empty()) return fabric_builder(fabrics.front(), nullptr, given).build();
  const auto templates = combine_nodes(nodes);
  if (templates.inside.what != scope::node) {
    throw input_error("the nodes' files describe different nodes: a fabric file joins equal ones");
  }
  return fabric_builder(fabrics.front(), &templates.inside, given).build();
}

}  // namespace

machine combine(std::vector<topology> files, const settings& given) {
  try {
    return combine_files(std::move(files), given);
  } catch (const std::length_error& e) {
    throw input_error(fmt::format("what was read {}", e.what()));
  }
}

}  // namespace attnsim::formats
