#include <stdexcept>

#include "validate/transports/mpi.hpp"

namespace attnsim::validate {

std::unique_ptr<transport> join_mpi(std::chrono::duration<double>) {
  throw std::runtime_error(
      "built without MPI: configure with ATTNSIM_MPI=ON where MPI is installed");
}

bool has_mpi() {
  return false;
}

}  // namespace attnsim::validate
