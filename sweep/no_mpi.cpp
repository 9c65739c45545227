#include <cstdlib>
#include <stdexcept>

#include "sweep/job.hpp"

namespace attnsim::sweep {

job::job() {
  const char* processes = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (processes == nullptr) processes = std::getenv("PMI_SIZE");
  if (processes != nullptr && std::atoi(processes) > 1)
    throw std::runtime_error("started by mpirun, but built without MPI (libopenmpi-dev)");
}

job::~job() = default;
void job::send(const std::string&) {}
std::string job::receive() {
  return {};
}
void job::serve(dispenser&) {}
void job::help(const worker&) {}

}  // namespace attnsim::sweep
