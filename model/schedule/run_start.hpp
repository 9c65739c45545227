// How a run begins, which decides when its operations are launched and how fast kernels are.
//
//   in_sequence  one of many: the host is ahead of the device, the device as warm as under lasting load
//   idle         on an idle device, as measured runs do: the host launches one operation after the other, and cool devices
//                run faster than under the lasting load for which kernel tables are (device.hpp, idle_start_profile)
//   idle_graph   the same, launched all at once as a CUDA graph
#pragma once

#include <string_view>

namespace attnsim {

enum class run_start { in_sequence, idle, idle_graph };

std::string_view name_of(run_start);
/// Throws std::invalid_argument that lists the names.
run_start parse_run_start(std::string_view text);

}  // namespace attnsim
