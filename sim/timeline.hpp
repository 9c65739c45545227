// What happened when: the one result type of the simulator and the executor. Times are seconds from the start of the pass.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cluster/network.hpp"
#include "model/units.hpp"

namespace attnsim {

/// One operation of the program on one rank.
struct interval {
  std::uint32_t operation = 0;
  seconds start;
  seconds end;
};

struct rank_timeline {
  int rank = 0;
  seconds end;                      ///< of its last operation
  seconds compute;                  ///< its compute stream was busy
  std::vector<interval> intervals;  ///< in order of their end; empty unless recorded
  double bytes_sent = 0;

  /// Time in which the device waited for data: the compute stream idle before the rank's end.
  seconds exposed_communication() const { return end - compute; }
};

/// From `since` on, until the next sample, a link carries `rate` bytes/s.
struct load_change {
  seconds since;
  double rate = 0;
};

struct link_load {
  link_id link = 0;  ///< one of `links` that are loaded alike
  std::size_t links = 1;
  double bytes = 0;                  ///< carried by each
  double utilisation = 0;            ///< bytes over what the link could have carried until the end
  std::vector<load_change> samples;  ///< empty unless recorded
};

struct timeline {
  std::vector<rank_timeline> ranks;  ///< one a class of ranks with equal timelines
  std::vector<int> class_of;         ///< by rank: index into `ranks`
  std::vector<link_load> links;      ///< of links that carried anything; the most utilised first
  std::vector<int> load_of;          ///< by link: index into `links`, -1 for the others

  /// The rank class that ends last.
  const rank_timeline& slowest() const;
  seconds duration() const { return slowest().end; }
};

}  // namespace attnsim
