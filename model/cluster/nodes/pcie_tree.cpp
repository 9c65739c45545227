#include "model/cluster/nodes/pcie_tree.hpp"

#include <fmt/format.h>

#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<peer_access, 3> accesses{
    {{peer_access::all, "all"}, {peer_access::same_switch, "switch"}, {peer_access::none, "none"}}};

}  // namespace

pcie_tree::pcie_tree(const config_node& node, const node_shape& shape) : shape_(shape) {
  rate_ = node.get<bandwidth>("bandwidth");
  latency_ = node.get<seconds>("latency", {});
  devices_per_switch_ = node.get_within("devices_per_switch", 1, shape.devices);
  switches_ = (shape.devices + devices_per_switch_ - 1) / devices_per_switch_;
  uplink_rate_ = node.get<bandwidth>("uplink_bandwidth", rate_);
  sockets_ = node.has("sockets") ? node.get_within("sockets", 1, switches_) : 1;
  socket_rate_ = sockets_ > 1 ? node.get<bandwidth>("socket_bandwidth") : rate_;
  socket_latency_ = node.get<seconds>("socket_latency", {});
  peers_ = node.has("peer_access")
               ? node.get_as("peer_access", [](auto text) { return find_value(accesses, text); })
               : peer_access::all;
  host_rate_ = node.get<bandwidth>("host_bandwidth", shape.devices * rate_);
}

int pcie_tree::switch_of(int leaf) const {
  const bool is_device = leaf < shape_.devices;
  const int device = is_device ? leaf : shape_.first_device_of(leaf - shape_.devices);
  return device / devices_per_switch_;
}

int pcie_tree::links() const {
  const int memories = peers_ == peer_access::all ? 0 : sockets_;
  return 2 * (leaves() + switches_ + memories) + sockets_ * (sockets_ - 1);
}

bool pcie_tree::through_host(int from, int to) const {
  if (peers_ == peer_access::same_switch) return switch_of(from) != switch_of(to);
  return peers_ == peer_access::none;
}

link_id pcie_tree::into_memory(int socket) const {
  return static_cast<link_id>(2 * (leaves() + switches_) + sockets_ * (sockets_ - 1) + 2 * socket);
}

void pcie_tree::build(network& net, const node_vertices& at) const {
  std::vector<vertex_id> switches, sockets;
  for (int s = 0; s < switches_; ++s) {
    switches.push_back(net.add_vertex({.node = at.node, .index = s, .tier = "pcie"}));
  }
  for (int s = 0; s < sockets_; ++s) {
    sockets.push_back(net.add_vertex({.node = at.node, .index = s, .tier = "socket"}));
  }
  const auto hang = [&](vertex_id leaf_vertex, int leaf, bandwidth rate, seconds latency) {
    net.add_duplex(leaf_vertex, switches[static_cast<std::size_t>(switch_of(leaf))], rate, latency,
                   link_kind::pcie);
  };
  for (int d = 0; d < shape_.devices; ++d) {
    hang(at.devices[static_cast<std::size_t>(d)], d, rate_, latency_);
  }
  for (int n = 0; n < shape_.nics.per_node; ++n) {
    hang(at.nics[static_cast<std::size_t>(n)], leaf_of_nic(n), shape_.nics.pcie_bandwidth, {});
  }
  for (int s = 0; s < switches_; ++s) {
    net.add_duplex(switches[static_cast<std::size_t>(s)],
                   sockets[static_cast<std::size_t>(socket_of(s))], uplink_rate_, latency_,
                   link_kind::pcie);
  }
  for (std::size_t a = 0; a < sockets.size(); ++a) {
    for (std::size_t b = a + 1; b < sockets.size(); ++b) {
      net.add_duplex(sockets[a], sockets[b], socket_rate_, socket_latency_, link_kind::pcie);
    }
  }
  if (peers_ == peer_access::all) return;
  for (int s = 0; s < sockets_; ++s) {
    const auto memory = net.add_vertex({.node = at.node, .index = s, .tier = "memory"});
    net.add_duplex(sockets[static_cast<std::size_t>(s)], memory, host_rate_, {},
                   link_kind::host_memory);
  }
}

void pcie_tree::climb(int from_leaf, int to_leaf, bool through_host,
                      std::vector<link_id>& path) const {
  const auto up = [](int child) { return static_cast<link_id>(2 * child); };
  const auto down = [](int child) { return static_cast<link_id>(2 * child + 1); };
  const int from_switch = switch_of(from_leaf), to_switch = switch_of(to_leaf);
  path.push_back(up(from_leaf));
  if (from_switch != to_switch || through_host) {
    const int a = socket_of(from_switch), b = socket_of(to_switch);
    const auto first = static_cast<link_id>(2 * (leaves() + switches_));
    path.push_back(up(leaves() + from_switch));
    if (through_host) {
      path.push_back(into_memory(a));
      path.push_back(into_memory(a) + 1);
    }
    if (a < b) path.push_back(first + 2 * pair_number(a, b, sockets_));
    if (a > b) path.push_back(first + 2 * pair_number(b, a, sockets_) + 1);
    path.push_back(down(leaves() + to_switch));
  }
  path.push_back(down(to_leaf));
}

void pcie_tree::between(int from, int to, std::vector<link_id>& path) const {
  climb(from, to, through_host(from, to), path);
}
void pcie_tree::to_nic(int device, std::vector<link_id>& path) const {
  climb(device, leaf_of_nic(shape_.nic_of(device)), false, path);
}
void pcie_tree::from_nic(int device, std::vector<link_id>& path) const {
  climb(leaf_of_nic(shape_.nic_of(device)), device, false, path);
}

}  // namespace attnsim
