// Emulated hosts: network namespaces of this machine joined by bridges over shaped cables, so that
// real MPI traffic runs over links of known rates where there is no cluster.
//
//   star        hosts - bridge
//   tree        hosts - leaf bridges - root bridge, a leaf's uplink with a rate of its own
//   two rails   two networks side by side, every host with an interface in each
//
// A rate holds for each direction of a cable: each end sends through one htb class with a deep byte
// queue and segmentation offload off, so that what is counted against the rate is Ethernet frames
// of `mtu` + 14 bytes at most. Host h is called "h<h>" and sees its rails as "rail0", "rail1", ...,
// and an unshaped "control" network that starts and stops programs and carries no data.
//
// Everything lives in private_namespaces: no name, address, process or file of it exists outside,
// and all of it goes with its owner, however that ends.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/units.hpp"
#include "tests/hosts/private_namespaces.hpp"

namespace attnsim::hosts {

struct host_network {
  int hosts = 2;
  int hosts_per_leaf = 0;                ///< 0: all hosts share one bridge
  int rails = 1;                         ///< interfaces a host
  bandwidth link{25e6};                  ///< host to bridge, each direction
  std::map<int, bandwidth> other_links;  ///< of hosts whose link has another rate
  bandwidth uplink{25e6};                ///< leaf to root, each direction
  int mtu = 1500;                        ///< bytes of an IP packet
  /// What a link that rested passes at once, as time at its rate. It makes up for timers that fire late, and hides as much
  /// of a message's time.
  int burst_us = 400;
  bool segments =
      true;  ///< false: up to four packets pass the links' queues as one, a quarter of the work
  /// Of a link, a power of two: among them it divides its rate evenly. Connections are dealt out to them by the other host, beyond 16 by
  /// their number among those to it too, where programs number them (connection_numbers.cpp). In one queue TCP divides a link
  /// unevenly between connections.
  int queues = 1;

  static host_network star(int hosts, bandwidth link);
  static host_network tree(int hosts, int hosts_per_leaf, bandwidth link, bandwidth uplink);
  static host_network two_rails(int hosts, bandwidth link);

  bandwidth link_of(int host) const {
    const auto other = other_links.find(host);
    return other == other_links.end() ? link : other->second;
  }

  /// What is left of a rate for data: TCP segments of mtu - 52 bytes (IPv4, TCP with time stamps)
  /// in frames of mtu + 14.
  double payload_share() const { return (mtu - 52.0) / (mtu + 14.0); }
};

/// Refuses a number outside of low to high, as input_error.
void check_within(const char* key, int value, int low, int high);

/// Refuses a network that can't be built, as input_error.
void check(const host_network& network);

/// Bytes of Ethernet frames as the host counts them.
struct interface_bytes {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// From a host's interface ("rail0", "rail1", ... or "control") to its bridge.
struct cable {
  int host = 0;
  std::string interface;
  bool operator==(const cable&) const = default;
};

class emulated_hosts {
 public:
  /// std::runtime_error, one line, where something is missing (see `missing`) or a command fails.
  explicit emulated_hosts(const host_network& network);

  /// One line naming what this machine lacks for emulated hosts; empty where nothing is.
  static std::string missing();

  static std::string name(int host);

  const host_network& network() const { return network_; }
  const private_namespaces& namespaces() const { return namespaces_; }

  /// Runs a program in the network of one host, where it sees the files and processes of all.
  program_result run_on(int host, const command_line& command) const;

  /// Since bring-up.
  interface_bytes bytes(int host, int rail) const;

  void pull(const cable& cable) const;
  void plug(const cable& cable) const;
  std::vector<cable> pulled_cables() const;

 private:
  host_network network_;
  private_namespaces namespaces_;
};

}  // namespace attnsim::hosts
