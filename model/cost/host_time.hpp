// Time of the host: what it takes to launch one rank's operations one after the other (model/cluster/host.hpp).
//
//   attention        a kernel call each; results that are added to others or change their format are merged, added or copied
//   merge            a merge for each partial output but the first
//   accumulate       an addition for each gradient but the first
//   copy             a copy a tensor but row statistics
//   delta            nothing: the backward kernel's call does it
//   shift, transpose an exchange, and each of its tensors
//   collectives      a call a tensor
//
// In a sequence of many layers the host runs ahead of the device until it is the slower one, so a pass takes the longer of
// the device's time and the host's. CUDA graphs launch all at once: no host profile then.
#pragma once

#include "model/cost/placed_schedule.hpp"

namespace attnsim {

/// Of `rank`; zero without a host profile.
seconds host_time(const placed_schedule&, int rank);

/// The largest over ranks (above 64: workload::some_ranks).
seconds host_time(const placed_schedule&);

}  // namespace attnsim
