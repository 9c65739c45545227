// Peak device memory of one rank: the buffers that the schedule allocates, by launch order. Own shards are held for the
// whole pass, a working buffer from the first operation that touches it to the last.
#pragma once

#include <vector>

#include "model/cost/workload.hpp"

namespace attnsim {

/// Working buffers of one tensor, format and size.
struct buffers_in_use {
  tensor what;
  precision format;
  byte_count each;
  int count = 0;  ///< two where the next chunk arrives while one is in use
};

struct memory_use {
  byte_count peak;
  byte_count resident;  ///< own shards: inputs, results, saved for backward
  byte_count working;   ///< the most that is live at once beside them
  byte_count cache;     ///< of resident, K and V that the rank keeps for later tokens
  byte_count scratch;   ///< for one kernel call's result before it is accumulated
  std::vector<buffers_in_use> at_peak;  ///< what makes up `working`, by tensor and format
};

memory_use peak_memory(const workload&);

}  // namespace attnsim
