// What a file says about machines, whatever its format: parts, cables between them, and notes of
// what was read, assumed and missing. Readers produce it, combine() joins several, exporters and the
// drawing read it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/cluster/network.hpp"

namespace attnsim::formats {

/// What a cluster file of ours can hold at a reasonable cost.
constexpr std::size_t most_parts = 1u << 17, most_cables = 1u << 18;

/// A host is a node whose inside the file does not tell.
enum class part_kind { device, nic, switch_, host };

struct part {
  std::string name;
  part_kind kind = part_kind::switch_;
  int node = -1;  ///< of a host: its NVLink domain; -1: none
};

struct cable {
  std::size_t from = 0, to = 0;  ///< parts
  bandwidth rate;                ///< each direction; zero: not in the file
  seconds latency;
  link_kind kind = link_kind::network;
  bool duplex = true;
};

/// What a file describes, which decides how files combine.
enum class scope {
  node,     ///< the inside of one node or several: devices, NICs, what joins them
  fabric,   ///< hosts and switches
  cluster,  ///< everything
};

struct notes {
  std::vector<std::string> read, assumed, missing, warnings;

  void add(const notes& other);
};

struct topology {
  scope what = scope::node;
  std::string device;        ///< a shipped profile; empty: not known
  std::string device_doubt;  ///< why it may be another; empty: no doubt
  bandwidth nic_rate;        ///< of the nodes' NICs towards the fabric; zero: no NICs
  std::vector<part> parts;
  std::vector<cable> cables;
  notes said;

  /// Both throw std::length_error beyond these limits.
  std::size_t add(part_kind, std::string name, int node = -1);
  void join(std::size_t from, std::size_t to, bandwidth, seconds latency, link_kind,
            bool duplex = true);

  std::size_t count(part_kind) const;
  std::vector<std::size_t> all(part_kind) const;
  int nodes() const;  ///< one more than the highest node number of a device
  /// The parts of a node and the cables among them; names lose the prefix "nodeN.".
  topology node(int number) const;
};

/// Cables by part: each cable stands at both of its ends.
std::vector<std::vector<std::size_t>> cables_of_parts(const topology&);

/// "3 NICs", "1 NIC".
std::string counted(std::size_t n, std::string_view what);

}  // namespace attnsim::formats
