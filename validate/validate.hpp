// Runs a strategy for real and holds it against the oracle and the simulator: what `attnsim
// validate` prints.
//
//   auto v = validate({.on = read_cluster("my-machine.yaml"), .problem = a, .chosen = s, .ranks = 4});
//
// With the transports "mpi" and "nccl" the same call is made on every rank of a job; each gets the
// same answer, and rank 0 is the one to print it. A back end names those it can run
// with (kernels/backends.hpp).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "kernels/backends.hpp"
#include "model/cluster/cluster.hpp"
#include "model/schedule/strategy.hpp"
#include "sim/timeline.hpp"
#include "validate/compare.hpp"
#include "validate/emulated_backend.hpp"
#include "validate/executor.hpp"
#include "validate/oracle.hpp"
#include "validate/repeats.hpp"
#include "validate/transport.hpp"

namespace attnsim::validate {

struct validation_request {
  const cluster& on;  ///< what the prediction is for, and what an emulated device computes like
  attention problem;
  strategy chosen;  ///< need not be completed
  int ranks = 1;
  pass_kind pass = pass_kind::forward;
  std::string kernel = kernels::backends().front().name;
  std::string transport = "inprocess";  ///< or "mpi", "nccl"
  emulation emulates = emulation::none;
  launch_mode mode = launch_mode::ahead;
  bool checks = true;  ///< the numbers; false: times alone, from random inputs
  repeats_wanted
      repeats;  ///< measured runs, after one for the numbers and two that wake the links; the median counts
  std::chrono::duration<double> time_out{60};  ///< of one operation waiting for its peers
};

struct pass_validation {
  pass_kind pass = pass_kind::forward;
  schedule program;
  bool computed = true;  ///< false: no numbers, as they were not computed or not to be checked
  numerics numbers;
  byte_count predicted_peak, measured_peak;  ///< memory, of the rank that takes most
  timeline predicted, measured;
  std::vector<seconds> durations;  ///< of the measured runs; `measured` is their median
  bool stopped_early = false;      ///< before the median was known as well as wanted
  std::vector<part_time> parts;    ///< compare.hpp
};

struct validation {
  int rank = 0;  ///< of this process; 0 in process
  strategy chosen;
  std::vector<pass_validation> passes;
  part_time total, compute, exposed_communication;  ///< sums over the passes
  bool passed = true;                               ///< all numbers that were computed
};

/// Throws input_error for an unknown kernel or transport, and for two that do not go together.
void require_possible(const std::string& kernel, const std::string& transport);

/// Throws what placed_schedule throws; input_error for an unknown kernel or transport, for two that do not go together,
/// or another number of ranks than the job has; transport_error that names rank and operation when a rank fails or is
/// late.
validation validate(const validation_request&);

/// The same on a transport that is there already; all its ranks call it.
validation validate(const validation_request&, transport&);

}  // namespace attnsim::validate
