#include "model/cluster/network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/error.hpp"

namespace attnsim {

vertex_id network::add_vertex(vertex v) {
  constexpr std::size_t most_vertices = 1u << 22;
  if (vertices_.size() == most_vertices) {
    throw input_error(fmt::format("the network has more than {} vertices", most_vertices));
  }
  const auto id = static_cast<vertex_id>(vertices_.size());
  if (v.kind == vertex_kind::device) devices_.push_back(id);
  vertices_.push_back(std::move(v));
  return id;
}

vertex_id network::add_switch(const char* tier) {
  return add_vertex({.kind = vertex_kind::switch_, .index = switches_[tier]++, .tier = tier});
}

link_id network::add_link(vertex_id from, vertex_id to, bandwidth capacity, seconds latency,
                          link_kind kind) {
  constexpr std::size_t most_links = 1u << 24;
  if (links_.size() == most_links) {
    throw input_error(fmt::format("the network has more than {} links", most_links));
  }
  links_.push_back({from, to, capacity, latency, kind});
  return static_cast<link_id>(links_.size() - 1);
}

link_id network::add_duplex(vertex_id a, vertex_id b, bandwidth capacity, seconds latency,
                            link_kind kind) {
  const auto forth = add_link(a, b, capacity, latency, kind);
  add_link(b, a, capacity, latency, kind);
  return forth;
}

int network::node_of(int device_number) const {
  return vertices_[device(device_number)].node;
}

std::string network::name(vertex_id id) const {
  const auto& v = vertices_[id];
  if (!v.label.empty()) return v.label;
  if (v.node < 0) return fmt::format("{}{}", v.tier, v.index);
  return fmt::format("node{}.{}{}", v.node, v.tier, v.index);
}

std::string network::name(link_id id, const char* arrow) const {
  return name(links_[id].from) + arrow + name(links_[id].to);
}

void network::route(int from, int to, std::vector<link_id>& path) const {
  if (from != to) router_->route(from, to, path);
}

std::vector<link_id> network::find_links(std::string_view link_name) const {
  std::vector<link_id> found;
  const auto arrow = link_name.find("->");
  if (arrow == std::string_view::npos) return found;
  std::vector<bool> is_from, is_to;
  for (vertex_id v = 0; v < vertices_.size(); ++v) {
    const auto text = name(v);
    is_from.push_back(text == link_name.substr(0, arrow));
    is_to.push_back(text == link_name.substr(arrow + 2));
  }
  for (link_id i = 0; i < links_.size(); ++i) {
    if (is_from[links_[i].from] && is_to[links_[i].to]) found.push_back(i);
  }
  return found;
}

void network::degrade(link_id id, double factor) {
  links_[id].capacity = links_[id].capacity * factor;
}

std::uint64_t flow_hash(int from, int to) {  // the finalizer of splitmix64
  std::uint64_t x = (static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to)) +
                    0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

link_kind transport_of(const network& net, std::span<const link_id> path) {
  auto kind = link_kind::nvlink;
  for (const auto id : path) kind = std::max(kind, net.links()[id].kind);
  return kind;
}

bool is_device_pcie(const network& net, link_id id) {
  const auto& l = net.links()[id];
  const auto is_device = [&](vertex_id v) { return net.vertices()[v].kind == vertex_kind::device; };
  return l.kind == link_kind::pcie && (is_device(l.from) || is_device(l.to));
}

}  // namespace attnsim
