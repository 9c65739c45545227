// One question with all that its readers need, built once: a strategy for an attention problem on a cluster, for one pass.
// The closed form, the simulator and the executor read the same instance.
#pragma once

#include <vector>

#include "model/cluster.hpp"
#include "model/cost/local.hpp"
#include "model/cost/transfer.hpp"
#include "model/strategy.hpp"
#include "model/workload.hpp"

namespace attnsim {

class instance {
 public:
  /// The cluster is kept by reference. `s` is completed (schedules.hpp); `pass` is forward or backward. Throws infeasible
  /// and input_error as placement, workload and device do.
  instance(const cluster&, const attention&, const strategy& s, pass_kind pass);
  instance(const instance&) = delete;

  const cluster& on() const { return cluster_; }
  const strategy& chosen() const { return strategy_; }
  const schedule& program() const { return schedule_; }
  const workload& work() const { return workload_; }
  const transfers& communication() const { return transfers_; }
  const local_costs& costs() const { return costs_; }
  int ranks() const { return schedule_.grid.ranks(); }
  int device_of(int rank) const { return devices_[static_cast<std::size_t>(rank)]; }
  double speed_of(int rank) const { return cluster_.device_speed[static_cast<std::size_t>(device_of(rank))]; }

 private:
  const cluster& cluster_;
  strategy strategy_;
  const kernel_profile* kernel_;
  schedule schedule_;
  std::vector<int> devices_;
  workload workload_;
  transfers transfers_;
  local_costs costs_;
};

}  // namespace attnsim
