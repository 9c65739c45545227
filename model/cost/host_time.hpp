// Time of the host: what it takes to launch one rank's operations one after the other (model/cluster/host.hpp).
//
//   attention        a kernel call each; results that are added to others or change their format are merged, added or cast
//   merge            a merge for each partial output but the first
//   accumulate       an addition for each gradient but the first
//   copy             a copy a tensor but row statistics, or a cast where its format changes
//   delta            nothing: the backward kernel's call does it
//   shift, transpose an exchange, and each of its tensors; those that a framework joins are one
//   collectives      a call a tensor
//
// A pass of an eager framework begins with an idle device: no operation starts before the host has come to it, one after the
// other in the program's order (sim/simulator.hpp). CUDA graphs launch all at once: no host profile then.
#pragma once

#include <vector>

#include "model/cost/placed_schedule.hpp"

namespace attnsim {

/// When the host of `rank` has launched each operation of the program, from its first on; empty without a host profile.
std::vector<seconds> launch_times(const placed_schedule&, int rank);

/// The same of a run that starts on idle devices, whose host is this project's executor (device.hpp, idle_start_profile and
/// call_launches); empty in sequence. Graphs are launched all at once, but for a first communication behind other operations, with which a
/// branch begins, and what is captured behind it: later by its wake.
std::vector<seconds> idle_launch_times(const placed_schedule&, int rank);

/// What the device takes before the operation begins, when all that it waits for is over: of a run that starts idle the events
/// between which each is timed (device.hpp, idle_start_profile).
seconds gap_before(const placed_schedule&, std::size_t op);

/// What communication takes longer where it is the first of a run from idle devices (device.hpp, transport_profile); else zero.
seconds wake_before(const placed_schedule&, std::size_t op);

/// Of `rank`, when it has launched all; zero without a host profile.
seconds host_time(const placed_schedule&, int rank);

/// The largest over ranks (above 64: workload::some_ranks).
seconds host_time(const placed_schedule&);

}  // namespace attnsim
