// Runs an MPI program on emulated hosts: mpirun (Open MPI) starts ranks inside the hosts'
// namespaces, their data goes over TCP through every rail (or those asked for), ranks of one host
// talk through shared memory.
//
// A launch has a process namespace of its own, so at its end, in time or not, the kernel ends every
// process of it; its files lie in the hosts' private /run. Ranks wait by polling and yielding,
// which lets many share a core.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/hosts/hosts.hpp"
#include "tests/hosts/launch_result.hpp"

namespace attnsim::hosts {

struct launch_request {
  std::string program;  ///< a path, or a name searched in PATH
  std::vector<std::string> arguments;
  int ranks =
      0;  ///< 0: one a host. Consecutive ranks share a host, the first hosts take the remainder
  std::vector<int> hosts;  ///< empty: all
  std::vector<int> rails;  ///< empty: all
  std::chrono::seconds time_out{60};
};

/// A launch that Open MPI itself does not end at the time-out is ended by the kernel this much
/// later.
inline constexpr std::chrono::seconds launch_grace{3};

/// mpirun is missing: std::runtime_error. A host or rail that doesn't exist: input_error. Whatever
/// goes wrong with the program is in the result.
launch_result launch(const emulated_hosts& hosts, const launch_request& request);

}  // namespace attnsim::hosts
