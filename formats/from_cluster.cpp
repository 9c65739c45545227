#include "formats/from_cluster.hpp"

#include <algorithm>

namespace attnsim::formats {
namespace {

part_kind kind_of(vertex_kind kind) {
  switch (kind) {
    case vertex_kind::device:
      return part_kind::device;
    case vertex_kind::nic:
      return part_kind::nic;
    case vertex_kind::switch_:
      break;
  }
  return part_kind::switch_;
}

bool is_reverse(const link& a, const link& b) {
  return a.from == b.to && a.to == b.from && a.capacity == b.capacity && a.latency == b.latency &&
         a.kind == b.kind;
}

}  // namespace

topology from_cluster(const cluster& c) {
  topology t{.what = scope::cluster, .device = c.device.name};
  const auto& net = c.network;
  for (vertex_id v = 0; v < net.vertices().size(); ++v) {
    t.add(kind_of(net.vertices()[v].kind), net.name(v), net.vertices()[v].node);
  }
  const auto links = net.links();
  for (link_id i = 0; i < links.size(); ++i) {
    const auto& l = links[i];
    const bool duplex = i + 1 < links.size() && is_reverse(l, links[i + 1]);
    t.join(l.from, l.to, l.capacity, l.latency, l.kind, duplex);
    const bool leaves = t.parts[l.from].kind == part_kind::nic && l.kind == link_kind::network;
    if (leaves && t.parts[l.from].node == 0) t.nic_rate = std::max(t.nic_rate, l.capacity);
    i += duplex;
  }
  return t;
}

}  // namespace attnsim::formats
