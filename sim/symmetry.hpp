// Which ranks, flows and links behave alike, so that the simulator runs one of each class.
//
// The classes form an equitable partition: ranks of one class run operations of the same durations
// and kernel calls and, pattern by pattern, take part in flows of the same classes; flows of one
// class have members of the same classes and load, with the same weights, links of the same classes;
// links of one class have the same capacity and carry the same number (weight) of flows of each
// class. Then all of a class do the same at the same time: by induction over events, if states agree
// up to an instant, each max-min filling step saturates a class of links at once and fixes a class
// of flows at one rate, so rates, the next completions and what they release agree too. Symmetry is
// found by colour refinement, never assumed: a straggler or one degraded link starts with its own
// colour and splits whatever it reaches.
//
// Colours are 64-bit hashes; a collision, which would merge unlike classes, has a chance of about
// n^2 / 2^64.
#pragma once

#include <vector>

#include "model/cost/placed_schedule.hpp"

namespace attnsim {

struct symmetry {
  std::vector<int> rank_class;               ///< by rank
  std::vector<int> rank_of_class;            ///< the lowest rank
  std::vector<std::vector<int>> flow_class;  ///< by pattern, flow
  std::vector<std::vector<int>> flow_of_class;
  std::vector<int> link_class;  ///< by link; -1: unused
  std::vector<link_id> link_of_class;
  std::vector<std::size_t> links_in_class;

  /// What one flow of a class asks of the class network: one use per class of links, with the weight
  /// that all flows of the class put on one such link.
  std::vector<std::vector<std::vector<link_use>>> uses;  ///< by pattern, flow class
};

/// The coarsest partition, or with `merge` false every rank, flow and link by itself.
symmetry find_symmetry(const placed_schedule&, bool merge = true);

}  // namespace attnsim
