// A schedule bound to an attention problem, for one pass: what its operations move and compute, wherever its ranks are
// placed. Strategies that differ in their placement alone share one (placed_schedule.hpp).
#pragma once

#include "model/cluster/cluster.hpp"
#include "model/cost/local.hpp"
#include "model/cost/workload.hpp"
#include "model/schedule/strategy.hpp"

namespace attnsim {

class priced_schedule {
 public:
  /// The device is kept by reference. `s` is completed; of it count tokens, shares, kernel, merges and start. Throws infeasible
  /// and input_error as workload and device do.
  priced_schedule(const device_profile&, const attention&, const strategy& s, schedule);
  priced_schedule(const priced_schedule&) = delete;

  const schedule& program() const { return schedule_; }
  const workload& work() const { return workload_; }
  /// Costs are worked out when first asked for: not for several threads at once.
  const local_costs& costs() const { return costs_; }

 private:
  const kernel_profile* kernel_;
  schedule schedule_;
  workload workload_;
  local_costs costs_;
};

/// The strategy with what its generator wants to know of the cluster (block_cost.hpp): all that makes programs of strategies
/// that differ in their placement alone differ.
strategy informed(strategy, const cluster&, const attention&, pass_kind);

}  // namespace attnsim
