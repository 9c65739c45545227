// A lower bound on the time of a strategy, from formulas alone: no schedule, flows or kernel calls are made, so that a
// search can rule candidates out before it estimates the rest (ask/planner.hpp).
//
//   computation    operations of the mean rank / (the kernel's highest rate x the fastest device's speed)
//   port           bytes that a rank sends (volume.hpp) / all links of a device
//   crossing       bytes that leave the mean node / all links out of a node; a ring over ranks of k nodes, be it of
//                  shifts or a collective, leaves a node at least k times, an all-to-all with every pair of two nodes
//   time           max(computation, port, crossing)
//
// Ulysses' exchanges, and all transfers of schedules that have them apart, come before and after the computation, so their
// port time adds to it. Where all ranks compute equally long so does half their crossing: a node
// may overlap one group's transfers in with another's out, but the last rank in still has to compute.
//
// Latencies, launches, transports' efficiency and contention only add to the time.
#pragma once

#include <map>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/schedule/grid.hpp"
#include "model/schedule/strategy.hpp"

namespace attnsim {

/// How often what ranks of a grid send crosses between nodes: the same for all strategies of this grid and placement, and
/// worked out when first asked for. Not for several threads at once.
class ranks_on_nodes {
 public:
  /// `whole`: whole_grid() of a strategy; `devices` by rank.
  ranks_on_nodes(const network&, rank_grid whole, const std::vector<int>& devices);

  const rank_grid& grid() const { return grid_; }
  double nodes() const { return nodes_; }

  /// How many times the traffic round each group along the axes leaves a node, over the ranks.
  double ring_crossings(axis_set);
  /// The share of what a rank sends in an all-to-all along the axes that goes to other nodes.
  double pair_crossings(axis_set);

 private:
  rank_grid grid_;
  std::vector<int> node_of_;  ///< by rank
  double nodes_;
  std::map<axis_set, double> of_rings_, of_pairs_;
};

class time_bound {
 public:
  /// The cluster is kept by reference.
  time_bound(const cluster&, const attention&);

  /// Of one pass, forward or backward. `devices` by rank, as place() has them for the strategy's grid.
  seconds of(const strategy&, const std::vector<int>& devices, pass_kind) const;
  /// The same; ranks on the strategy's whole grid.
  seconds of(const strategy&, ranks_on_nodes&, pass_kind) const;

 private:
  double computation(const strategy&, int ranks, pass_kind) const;
  bool equal_work(const strategy&) const;

  const cluster& cluster_;
  attention attention_;
  double pairs_;              ///< visible, of all heads and batches
  double device_egress_ = 0;  ///< bytes/s of the device with most
  double node_egress_ = 0;    ///< the same of nodes; 0: no nodes
  double fastest_ = 0;        ///< device speed
};

}  // namespace attnsim
