// Ranks in a ring as the simulator needs them (ring_of_ranks.hpp): what each rank's flows go over, and after how many ranks the
// ring repeats itself: a node, and a leaf switch of nodes.
#pragma once

#include <optional>
#include <vector>

#include "model/cost/placed_schedule.hpp"
#include "sim/clock.hpp"
#include "sim/stream_programs.hpp"

namespace attnsim {

/// What the flows from one rank to its neighbour have for themselves.
struct ring_hop {
  double rate = 0;        ///< bytes/s of all of them together
  double rate_limit = 0;  ///< of each
  flow_latency latency;

  /// Seconds that a flow of so many bytes takes at least, from the arrival of both ranks on.
  picoseconds least_latency(double bytes) const;
  picoseconds least_transfer(double bytes) const;

  friend bool operator==(const ring_hop& a, const ring_hop& b) {
    return a.rate == b.rate && a.rate_limit == b.rate_limit && a.latency.fixed == b.latency.fixed &&
           a.latency.ramp.points().data() == b.latency.ramp.points().data();
  }
};

struct ring_layout {
  int ranks = 0;
  int period = 0;              ///< ranks of a cell; divides the ring
  std::vector<int> direction;  ///< by pattern: +1 or -1, from the sender to the receiver
  std::vector<std::vector<ring_hop>> hops;  ///< by pattern, sender
  std::vector<int> kind_of_cell;            ///< of cells that are alike in speed and hops the same
  int block = 0;  ///< cells after which these kinds repeat themselves best; divides the cells
  std::vector<std::vector<double>> sizes;  ///< by lane: the bytes of its flows, each once

  int cells() const { return ranks / period; }
  int blocks() const { return cells() / block; }
};

/// Nothing where a pattern of communication is another, where flows share links with others, or where too few cells are alike.
std::optional<ring_layout> find_ring(const placed_schedule&, const stream_programs&);

/// The ranks of a ring from which on the tile variant of a kernel operation is another than that of the ranks before.
std::vector<int> variant_changes(const placed_schedule&, std::size_t op);

}  // namespace attnsim
