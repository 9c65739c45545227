// Peak device memory of one rank: the buffers that the schedule allocates, by launch order. Own shards are held for the
// whole pass, a working buffer from the first operation that touches it to the last.
#pragma once

#include <map>

#include "model/workload.hpp"

namespace attnsim {

struct memory_use {
  byte_count peak;
  byte_count resident;  ///< own shards: inputs, results, saved for backward
  byte_count working;   ///< the most that is live at once beside them
  byte_count scratch;   ///< for one kernel call's result before it is accumulated
  std::map<tensor, byte_count> working_by_tensor;  ///< of the working buffers live at the peak
};

memory_use peak_memory(const workload&);

}  // namespace attnsim
