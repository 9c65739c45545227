// What every device of a group does alike, run in simulated time: operations on in-order streams, of which the first computes
// and the others move data. Transfers share the links they have in common max-min fairly, and a kernel takes `slowdown` times as
// long while data moves beside it (device.hpp), as in simulator.hpp. A whole attention pass is one operation here, of the time
// and the traffic that its own simulation had.
#pragma once

#include <span>
#include <vector>

#include "model/cost/group_transfer.hpp"

namespace attnsim {

struct device_operation {
  int kind = 0;    ///< the caller's: times are added up by it
  int stream = 0;  ///< 0 computes
  seconds work;    ///< of the device, with nothing beside it
  const group_transfer* transfer = nullptr;
  double buffer_bytes = 0;
  bool slows_kernels = true;  ///< false: the kernel's time has it already
  std::vector<int> after =
      {};  ///< operations that end first, besides those before it on its stream
};

struct device_run {
  std::vector<seconds> start, end;  ///< by operation
  seconds time;
  std::vector<seconds> busy;  ///< the compute stream, by kind of its operations
  std::vector<seconds>
      waits;  ///< the compute stream idle, by kind of what it waited for; at the end, of what ended last
};

/// `kinds`: how many there are. Throws std::logic_error when operations wait for each other.
device_run run_alike(const device_profile&, std::span<const device_operation>, int kinds);

}  // namespace attnsim
