// Measures the links of emulated hosts by MPI messages alone, as a user of the network sees them:
// MPI's own costs are in the latency, TCP's headers in the bandwidth. What it finds goes into a
// cluster description.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/hosts/hosts.hpp"
#include "tests/hosts/link_fit.hpp"

namespace attnsim::hosts {

/// A path between two hosts that stands for all of its kind.
struct link_kind {
  std::string
      name;  ///< "leaf", "core"; on a rail "leaf rail0"; over all rails at once "leaf all rails"
  std::pair<int, int> hosts;
  std::vector<int> rails;
  bool operator==(const link_kind&) const = default;
};

/// Those a network has: within a leaf where one has two hosts, across the core where there are two
/// leaves.
std::vector<link_kind> link_kinds(const host_network& network);

struct link_measurement {
  link_kind kind;
  std::vector<transfer> one_way;    ///< time of a message while nothing else moves
  std::vector<transfer> both_ways;  ///< time of an exchange, each direction carrying `size`
  link_fit one_way_fit;
  link_fit both_ways_fit;
};

/// `probe` is the program attnsim-link-probe. `kinds`: empty for all that the network has. Sizes are such that either the latency or the rate
/// decides; in between, the burst of the shaped cables shows. std::runtime_error where a launch
/// fails.
std::vector<link_measurement> measure_links(const emulated_hosts& hosts, const std::string& probe,
                                            std::vector<link_kind> kinds = {});

}  // namespace attnsim::hosts
