// Slices of this machine's GPUs as the devices of emulated hosts: CUDA's multi-process service (MPS) gives each rank a
// share of a card's multiprocessors, and each rank sits on a host of its own, its data going over NCCL's sockets through
// every rail. A few cards then run grids of many small devices, real kernels and real NCCL, over any network.
//
// Measured on H200: 16 slices of 12 % on two cards compute within 2 % as fast together as one alone. A slice of 6 % has 8
// multiprocessors, one of 12 % has 14.
//
// The service lives in the hosts' private namespaces, so it ends with them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/hosts/hosts.hpp"

namespace attnsim::hosts {

struct slice_request {
  std::string program;  ///< a path, or a name searched in PATH
  std::vector<std::string> arguments;
  int gpus = 1;      ///< cards of this machine, dealt out in turn
  int share = 12;    ///< per cent of a card's multiprocessors for a rank
  int channels = 2;  ///< NCCL's; each takes one of the slice's multiprocessors
  /// The library of connection_numbers.cpp, which ranks are started with; empty: none, and links of several queues tell connections
  /// by the other host alone.
  std::string connection_numbers;
  std::chrono::seconds time_out{60};
};

/// One line naming what this machine lacks for slices; empty where nothing is.
std::string missing_for_slices();

/// The fastest link that this machine's cores carry for so many hosts at once: seen to hold are 16 hosts at 1 Gb/s on 16
/// cores; at 2 Gb/s a ring took twice as long as its links need.
bandwidth fastest_link(int hosts, int cores);

/// Refuses shares of a card that add up to more than 100 %, and links faster than `cores` carry, as input_error.
void check(const slice_request& request, const host_network& network, int cores);

/// Starts a rank on each host, with torchrun's variables, and waits for all. Status 137 where the time-out ended them.
program_result run_on_slices(const emulated_hosts& hosts, const slice_request& request);

}  // namespace attnsim::hosts
