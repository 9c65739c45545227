// Collectives message by message, as NCCL sends them: what the fast form
// (model/cost/collective.hpp) sums up is here every message of every step as a flow of its own, with
// what it waits for.
//
//   ring   on each channel, step t of a rank waits for what its predecessor sent in step t - 1 and,
//          as two are under way at most, for its own send of step t - 2
//   tree   the buffer travels in pieces; a piece goes up from a device when it has come from all its
//          children, and down when it has come from the parent; every edge sends in order
//   pairs  all at once
// A device goes on to the next stage of a hierarchical collective when it has sent and received all
// of the last one; it does not wait for others.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/collective.hpp"

namespace attnsim {

struct message {
  int from = 0;  ///< device numbers
  int to = 0;
  double bytes = 0;
  seconds latency;                   ///< beyond that of its links
  double efficiency = 1;             ///< share of a link that it reaches
  std::vector<std::uint32_t> after;  ///< messages that must have arrived
  double crowded = 1;                ///< how many times its bytes weigh on PCIe links of devices
};

/// `pieces`: of the buffer in a tree. Throws infeasible as stages() does.
std::vector<message> expand(const cluster&, const collective&, const std::vector<int>& devices,
                            double bytes, int pieces = 1);

/// When each message arrives, with the network to itself. Throws std::logic_error, which names a
/// message and what it waits for, when messages wait for each other.
std::vector<seconds> arrivals(const cluster&, const std::vector<message>&);

/// The last of them.
seconds duration(const cluster&, const std::vector<message>&);

}  // namespace attnsim
