// The closed form: the time of a schedule without simulating its cluster. One rank is followed through its program as if
// all others were in the same state, so an exchange starts when this rank reaches it. That is exact where ranks are alike
// and links are not contended by different patterns; elsewhere it is the estimate that prunes a search.
//
//   an operation starts when its stream is free, what it needs (schedule.hpp) is complete, and so is what was launched before
//                  it into the same hardware queue (device.hpp)
//   local          local_costs::time over the device's speed
//   communication  latency + bytes x max over its links (load of all flows of its pattern / capacity); operations in
//                  progress at once that have a slowest link in common share it, equally but for their shares
//                  (device.hpp, share_spread)
//
// For the basic schedules this evaluates to the formulas
//   ring forward      c_0 + ... : sum over s < P-1 of max(c_s, x) + c_{P-1}       x = latency + 2 kv / bandwidth
//   attention2d       latencies + (gathers + reductions) / bandwidth + c
// Launch order and multiprocessors (simulator.hpp) are not modelled.
#pragma once

#include "model/cost/placed_schedule.hpp"

namespace attnsim {

struct analytic_estimate {
  seconds time;
  seconds compute;
  int rank = 0;  ///< the one that ends last among the ranks that were followed

  seconds exposed_communication() const { return time - compute; }
};

analytic_estimate estimate(const placed_schedule&);

/// What estimate() cannot fall below on devices of speed 1, wherever the ranks are placed: what the last rank, which it
/// follows too, computes.
seconds computation(const priced_schedule&);

}  // namespace attnsim
