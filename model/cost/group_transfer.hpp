// A collective that equal groups of devices do at once, each its own, as one transfer: what it asks of every link, so that
// transfers beside each other can share them (sim/device_run.hpp). collective.hpp has each group's flow.
//
//   time alone = latency + bytes x seconds a byte,   bytes: what a rank sends
#pragma once

#include <vector>

#include "model/cost/collective.hpp"

namespace attnsim {

struct group_transfer {
  std::vector<link_use>
      uses;  ///< seconds in which a link moves what all groups send for each byte of a rank
  flow_latency latency;
  link_kind transport = link_kind::nvlink;
  double least_seconds_a_byte = 0;  ///< whatever the links have left
  double bytes_a_byte =
      0;  ///< what a rank sends for each byte of the buffer, as collective.hpp counts it

  bool moves() const { return bytes_a_byte > 0; }
  double seconds_a_byte() const;
  /// Of a buffer of so many bytes, with the network to itself.
  seconds time_alone(double buffer_bytes) const;
};

/// By rings, an all-to-all by pairs. Moves nothing for groups of one.
group_transfer transfer_in(const cluster&, collective_kind, const device_groups&);

/// Each pair's first device sends to its second.
group_transfer send_in(const cluster&, const device_groups& pairs);

}  // namespace attnsim
