// How a launch ended, rank by rank, and which rank is to blame.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/units.hpp"
#include "tests/hosts/hosts.hpp"

namespace attnsim::hosts {

struct rank_end {
  enum class state {
    never_started,
    starting,  ///< its program runs and has not come to MPI_Init
    running,   ///< hung, or stopped because another rank failed
    exited,
  };
  int rank = 0;
  int host = 0;
  state how = state::never_started;
  int status = 0;                          ///< of an exited rank: exit code, or 128 + signal
  std::filesystem::file_time_type when{};  ///< an exited rank did
};

struct launch_result {
  bool timed_out = false;
  int status = 0;  ///< mpirun's
  seconds duration;
  std::string output;
  std::string errors;
  std::vector<rank_end> ranks;
  std::vector<int>
      lost_hosts;  ///< that could not be entered or lost Open MPI's daemon, the first one first
  std::vector<cable> pulled_cables;  ///< when a failed launch ended

  /// One line, empty where all went well. The first of these that applies: the rank that failed
  /// before all others; ranks on hosts with a pulled cable; ranks that never started on a lost
  /// host; ranks that never started; ranks that didn't come to MPI_Init; ranks still running.
  std::string failure() const;
};

/// Marks as `starting` the started ranks that mpirun's --report-state-on-timeout, found in its
/// `errors`, has as launched and not yet known to MPI.
void mark_starting(std::vector<rank_end>& ranks, const std::string& errors);

}  // namespace attnsim::hosts
