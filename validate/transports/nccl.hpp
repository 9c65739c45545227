// Ranks on NVIDIA GPUs, one process each, joined by NCCL. Started by mpirun, srun, torchrun or tests/gpu/launch
// (rendezvous.hpp); no MPI is needed.
//
// A channel has a communicator of its own, split from that of all ranks (ncclCommSplit), and enqueues its kernels on
// native_stream(): so operations of different streams never wait for each other. Communicators of closed channels are
// kept for the next channel of the same group. shift and transpose are grouped sends and receives; all_gather and
// reduce_scatter are NCCL's; all_to_all is grouped sends and receives with all members.
//
// One rank a GPU. Several share one if NCCL takes them for different hosts: each with its own NCCL_HOSTID; they then
// talk through sockets and take turns on the GPU, which is right for checking numbers and wrong for timing.
//
// Launch order is program order: what the executor enqueues first is ready first. Communicators are non-blocking, so that
// also a peer that never connects is noticed; NCCL starts a thread for each of their operations. With blocking ones a
// launch costs less, and a peer that never connects ends this process with a line on standard error. A thread watches the operations under way. One that is ready and not done within the time-out, an error of NCCL, or
// the end of a peer's process ends all communication of this rank: communicators are aborted, which lets waiting kernels
// return, and transport_error comes from synchronize() of the channels' streams, the next operation and share().
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "validate/transport.hpp"
#include "validate/transports/rendezvous.hpp"

namespace attnsim::validate {

struct nccl_options {
  std::chrono::duration<double> time_out{60};
  /// That an operation has at most, each on a multiprocessor (maxCTAs); 0: NCCL's choice.
  int channels = 0;
  bool blocking = false;  ///< communicators block: cheaper launches, see above
};

/// input_error where the library was built without NCCL, transport_error when ranks don't come.
std::unique_ptr<transport> join_nccl(const nccl_options&, const job_place&);

bool has_nccl();
std::string nccl_version();  ///< as "2.28.9"; empty without it

}  // namespace attnsim::validate
