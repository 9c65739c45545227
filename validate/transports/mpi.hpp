// Ranks as processes of an MPI job (mpirun, srun): the same program runs on every rank.
//
// One thread a process does all that is MPI, so any MPI library will do, and polls for the streams
// that wait; between polls it sleeps, which lets many ranks share a core. Lanes are tags.
//
// A rank that does not come to MPI_Init, or to MPI_Finalize, in time ends this process with one
// line on standard error and code 1; MPI's launcher then ends the others. After a failure the
// process leaves MPI alone: it should end with a code other than 0, so that the launcher does.
#pragma once

#include <chrono>
#include <memory>

#include "validate/transport.hpp"

namespace attnsim::validate {

/// Once a process. input_error where the library was built without MPI.
std::unique_ptr<transport> join_mpi(std::chrono::duration<double> time_out);

/// Whether the library was built with MPI.
bool has_mpi();

}  // namespace attnsim::validate
