// What attnsim doctor finds, a line each.
#pragma once

#include <string>
#include <vector>

namespace attnsim::cli {

struct finding {
  std::string what;    ///< "transport mpi"
  bool ready = false;  ///< it can be used here and now
  std::string says;    ///< which, how many; of what is not ready, what it needs
};

/// What measures and validates: back ends and transports of this build, with the devices for them here.
std::vector<finding> findings_of_execution();

}  // namespace attnsim::cli
