// The cuts of a network that a limit is asked of: a part of the devices with all that is nearest to them, and the links that
// join it to the rest. Whatever a schedule does, bytes between the part and the rest cross those links, so the sum of their
// capacities bounds how fast. Any part gives a true bound; these are the ones that bind in practice:
//
//   single devices, nodes, runs of 2, 4, 8, ... nodes, and the first 1, 2, 3, ... nodes of all
//
// A vertex that is no device belongs to a part if all devices nearest to it, in hops, do: a leaf switch to its nodes, a
// spine to all. Devices are numbered node by node and leaf by leaf, so runs of them are what shares a switch, a group of a
// dragonfly or a site.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "model/cluster/network.hpp"

namespace attnsim {

struct cut {
  int first = 0, last = 0;  ///< the part: these devices
  bandwidth out, in;        ///< what transports reach on all links that leave it, and that enter it
  int partition = -1;  ///< which way of dividing all devices it is a part of, by number; -1: none
};

/// By link_kind: the largest share of its bandwidth that anything reaches on such a link.
using link_shares = std::array<double, 4>;
constexpr link_shares whole_links{1, 1, 1, 1};

/// Of the device's transports: a link is driven as the slowest kind of the path that it is a part of.
link_shares reachable_shares(const device_profile&);

/// Of devices that are used (by number): none that has all of them or none on one side. O(links x log devices).
std::vector<cut> cuts_of(const network&, const std::vector<int>& used,
                         const link_shares& = whole_links);

/// How many devices share a switch that is nearest to them and no others, each number once, ascending.
std::vector<int> sizes_of_groups(const network&);

/// "the links of node3", "the links between node0 to node3 and the others (leaf to spine)".
std::string name_of(const network&, const cut&);

}  // namespace attnsim
