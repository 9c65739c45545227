// Collectives as NCCL runs them, in the fast form: a stage of a collective is one flow over all its
// links at once, because its messages move alike. sim/collectives.hpp has every message of every
// step; a test holds one to the other.
//
//   stage   messages                                     latency                       bytes per rank
//   ring    each rank to the next, on every channel      start + steps x step + hops   what it sends
//   pairs   each rank to every other, at once            start                         what it sends
//   tree    up and down the edges of every channel       start + 2 depth x step +      the buffer
//                                                        links of the longest path
// (an all-to-all's bytes weigh more on the PCIe links of devices whose transport is crowded by many peers: device.hpp)
// where a step costs the transport's step latency; hops are the links of all hops but one, once a round: what a piece
// passes on its way (2 of 16 hops leave a node). A tree pipelines pieces of the buffer; filling the pipe is left out.
//
//   collective      algorithm      stages, with n ranks on m nodes of g, for a buffer of S bytes
//   all-gather      ring           n - 1 steps, S (n - 1) / n
//   reduce-scatter                 hierarchical: rings of m along the rails (same place in every
//                                  node), S (m - 1) / n; rings of g within nodes, S (g - 1) / g
//   all-reduce      ring           2 (n - 1) steps, 2 S (n - 1) / n
//                   tree           one stage, S
//                   hierarchical   reduce-scatter within nodes, all-reduce along rails of S / g,
//                                  all-gather within nodes
//   all-to-all      pairs          S (n - 1) / n
//                   hierarchical   pairs within nodes, S (g - 1) / g; along rails, S (m - 1) / m
// S counts as in nccl-tests: the gathered result, the reduced input, what one rank sends to all.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/cluster/link_use.hpp"

namespace attnsim {

enum class collective_kind { all_gather, reduce_scatter, all_reduce, all_to_all };
enum class collective_algorithm { ring, tree, pairs, hierarchical };

struct collective {
  collective_kind kind;
  collective_algorithm algorithm;
};

/// What passes before a flow's bytes run at their rate (device.hpp, transport_profile).
struct flow_latency {
  seconds fixed;
  message_ramp ramp;

  seconds of(double bytes) const { return std::max(seconds(), fixed + ramp.of(bytes)); }
  friend auto operator<=>(const flow_latency& a, const flow_latency& b) {
    return a.fixed <=> b.fixed;
  }
};

/// One stage: a flow of `bytes` that loads each link with weight x rate.
struct collective_flow {
  std::vector<link_use> uses;
  flow_latency latency;
  link_kind transport = link_kind::nvlink;
  double bytes = 0;
  double rate_limit =
      std::numeric_limits<double>::infinity();  ///< bytes/s, whatever the links have left

  /// Weights become what NCCL takes of each link (device.hpp, transport_profile) where it reaches `efficiency` of it alone
  /// and `shared` together with others; beforehand they are the bytes that a link carries for every byte of the flow.
  void take_shares(const network&, const transport_profile&, double efficiency, double shared);
  /// On links that nothing else uses.
  double seconds_a_byte(const network&) const;
};

/// The slowest kind of link between any two neighbours of the list, which decides the transport.
link_kind transport_between(const cluster&, std::span<const int> devices);

/// An all-reduce goes round twice.
collective_flow ring_flow(const cluster&, const std::vector<int>& devices, int rounds,
                          double bytes);
collective_flow pairs_flow(const cluster&, const std::vector<int>& devices, double bytes);
collective_flow tree_flow(const cluster&, const std::vector<int>& devices, double bytes);

using device_groups = std::vector<std::vector<int>>;

/// Of each group a flow, none of groups of one: much faster for many groups than one by one.
std::vector<collective_flow> ring_flows(const cluster&, const device_groups&, int rounds,
                                        double bytes);
std::vector<collective_flow> pairs_flows(const cluster&, const device_groups&, double bytes);

/// The groups of a hierarchical collective.
struct node_groups {
  device_groups nodes;
  device_groups rails;  ///< the k-th device of every node
};
/// Throws infeasible unless all nodes have as many of the devices.
node_groups groups_of(const network&, const std::vector<int>& devices);

/// The stages one after the other. Throws infeasible for an algorithm that the collective does not
/// have, and as groups_of does.
std::vector<collective_flow> stages(const cluster&, const collective&,
                                    const std::vector<int>& devices, double bytes);

/// With the network to itself.
seconds time_alone(const cluster&, std::span<const collective_flow> stages);

}  // namespace attnsim
