// The steps by which a search goes from one schedule to others: each changes one thing that the problem and the cluster allow.
//
//   parts       twice or half as many parts of the heads
//   levels      another way of sharing the work at one level of the cluster, or two levels' ways exchanged
//   schedule    a published schedule in place of a composed one, and the other way round
//   place       another placement; two groups of ranks in each other's place
//   shares      tokens by the devices' speeds; a little more for one chunk and less for another; equal again
//   reduction   ring or all-to-all
//   launch      compute or communication first
#pragma once

#include <random>
#include <vector>

#include "model/attention/attention.hpp"
#include "model/cluster/cluster.hpp"
#include "model/schedule/strategy.hpp"

namespace attnsim {

class search_moves {
 public:
  /// References are kept.
  search_moves(const cluster&, const attention&, int ranks);

  /// Every composition of the cluster's levels, with `usual` tokens and kernel.
  std::vector<strategy> compositions(const strategy& usual) const;
  /// The strategy in 2, 4, ... parts, as far as its heads allow, and with shares by speed where devices differ: what pays most.
  std::vector<strategy> refinements(const strategy&) const;
  /// One random step. Not every result can run.
  strategy step(strategy, std::mt19937_64&) const;

  /// Shares in proportion to the speed of each chunk's devices; empty where all are alike.
  std::vector<int> shares_by_speed(const strategy&) const;

 private:
  std::vector<int> part_counts(const strategy&) const;
  strategy other_level(strategy, std::mt19937_64&) const;
  strategy other_place(strategy, std::mt19937_64&) const;
  strategy other_shares(strategy, std::mt19937_64&) const;

  const cluster& cluster_;
  const attention& attention_;
  int ranks_;
  std::vector<int> levels_;
};

}  // namespace attnsim
