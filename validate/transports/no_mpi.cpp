#include "model/error.hpp"
#include "validate/transports/mpi.hpp"

namespace attnsim::validate {

std::unique_ptr<transport> join_mpi(std::chrono::duration<double>) {
  throw input_error(
      asked("transport"), "mpi",
      "not in this build: install MPI (libopenmpi-dev) and configure with -DATTNSIM_MPI=ON");
}

bool has_mpi() {
  return false;
}

}  // namespace attnsim::validate
