// The network: devices, NICs and switches joined by directed links, and the route that a flow
// takes. Built from a cluster file (model/cluster/cluster.hpp): node template + fabric, or an explicit
// graph. Cut-through: a message's time is the sum of its links' latencies plus its bytes over the
// rate it gets, however many links it crosses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/device.hpp"
#include "model/cluster/link_use.hpp"
#include "model/units.hpp"

namespace attnsim {

using vertex_id = std::uint32_t;

enum class vertex_kind { device, nic, switch_ };

struct vertex {
  vertex_kind kind = vertex_kind::switch_;
  int node = -1;          ///< the node that holds it; -1: outside any node
  int index = 0;          ///< number among its like
  const char* tier = "";  ///< "gpu", "nic", "nvswitch", "leaf", "spine", ...; static storage
  std::string label;  ///< the user's name in an explicit graph; empty: made of node, tier and index
};

struct link {
  vertex_id from = 0;
  vertex_id to = 0;
  bandwidth capacity;
  seconds latency;
  link_kind kind = link_kind::network;
};

/// Chooses the links of a flow. One class a kind of node and fabric.
class router {
 public:
  virtual ~router() = default;
  /// Appends the links from device `from` to device `to`, in order. Deterministic; equal-cost
  /// choices hash the pair.
  virtual void route(int from, int to, std::vector<link_id>& path) const = 0;
};

class network {
 public:
  /// Throws input_error beyond 2^22 vertices.
  vertex_id add_vertex(vertex);
  /// A switch outside the nodes, numbered among those of its tier.
  vertex_id add_switch(const char* tier);
  /// Throws input_error beyond 2^24 links.
  link_id add_link(vertex_id from, vertex_id to, bandwidth, seconds latency, link_kind);
  /// Both directions; the second link is the first + 1.
  link_id add_duplex(vertex_id a, vertex_id b, bandwidth, seconds latency, link_kind);
  void set_router(std::shared_ptr<const router> r) { router_ = std::move(r); }

  std::span<const vertex> vertices() const { return vertices_; }
  std::span<const link> links() const { return links_; }
  int devices() const { return static_cast<int>(devices_.size()); }
  vertex_id device(int i) const { return devices_[static_cast<std::size_t>(i)]; }
  int node_of(int device_number) const;

  std::string name(vertex_id) const;  ///< "node3.gpu2", "leaf4", or the user's label
  std::string name(link_id id, const char* arrow) const;  ///< "node3.nic2->leaf4" with arrow "->"

  /// Appends the links from one device to another; none when they are the same.
  void route(int from, int to, std::vector<link_id>& path) const;

  /// The links called "A->B": several where cables run side by side, none for an unknown name.
  std::vector<link_id> find_links(std::string_view link_name) const;

  /// A link at a fraction of its bandwidth (a degraded cable).
  void degrade(link_id, double factor);

 private:
  std::vector<vertex> vertices_;
  std::vector<link> links_;
  std::vector<vertex_id> devices_;
  std::map<std::string_view, int> switches_;  ///< how many, by tier
  std::shared_ptr<const router> router_;
};

/// A hash of the pair that chooses among equal-cost paths, well mixed in all its bits.
std::uint64_t flow_hash(int from, int to);

/// The kind that decides how NCCL drives a path: network if any link is, else host_memory, pcie, nvlink.
link_kind transport_of(const network&, std::span<const link_id> path);

/// Whether the link joins a device to PCIe.
bool is_device_pcie(const network&, link_id);

}  // namespace attnsim
