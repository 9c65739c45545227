// Where the ranks of a job find each other, without MPI: who this process is, from the launcher's environment, and a
// star of TCP connections to rank 0.
//
//   torchrun   RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT
//   mpirun     OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE; MASTER_ADDR where ranks are on several hosts
//   srun       SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID; MASTER_ADDR or the first of SLURM_STEP_NODELIST
//
// The first of these that is there counts. Without MASTER_PORT the port follows from the job's number;
// where torchrun's agent holds MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True) it is the next one.
#pragma once

#include <functional>
#include <string>

#include "validate/transports/host_transport.hpp"

namespace attnsim::validate {

struct job_place {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;   ///< among those of this host
  int local_ranks = 1;  ///< 0: unknown
  std::string address;  ///< of rank 0's host
  int port = 0;
};

/// Looks a variable up; nullptr: it isn't set.
using environment = std::function<const char*(const char*)>;

/// input_error for a variable that is no number or missing, and where nothing says which rank this is.
job_place find_place(const environment&);
job_place find_place();

/// The first host of SLURM's list: "node[03-05,9],other" gives "node03".
std::string first_host(const std::string& list);

/// Sharing, barriers and clocks over the star; channels are left to who derives from it.
class tcp_transport : public host_transport {
 public:
  /// Returns when all ranks have come. transport_error that names those that have not.
  tcp_transport(const job_place&, std::chrono::duration<double> time_out);
  ~tcp_transport() override;
  tcp_transport(const tcp_transport&) = delete;
  tcp_transport& operator=(const tcp_transport&) = delete;

  int rank() const override { return place_.rank; }
  int ranks() const override { return place_.ranks; }
  int local_rank() const override { return place_.local_rank; }
  int local_ranks() const override { return place_.local_ranks; }

  /// Between rank 0 and another one.
  void exchange(int lane, const std::string& what, const std::vector<outgoing>&,
                const std::vector<incoming>&) override;

 protected:
  const job_place& place() const { return place_; }
  /// A rank that has closed its connection, or -1. For any thread.
  int lost_rank() const;
  /// Tells all connected ranks that this one has ended. For any thread.
  void hang_up();

 private:
  struct connections;
  using deadline = std::chrono::steady_clock::time_point;

  void accept_all(deadline);
  void reach_rank_0(deadline);

  job_place place_;
  std::unique_ptr<connections> connections_;
};

}  // namespace attnsim::validate
