// A schedule bound to an attention problem and placed on a cluster, for one pass: all that its readers need, built once.
// The closed form, the simulator and the executor read the same one.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/cost/local.hpp"
#include "model/cost/priced_schedule.hpp"
#include "model/cost/transfer.hpp"
#include "model/cost/workload.hpp"
#include "model/schedule/strategy.hpp"

namespace attnsim {

class placed_schedule {
 public:
  /// The cluster is kept by reference. `s` is completed (schedules.hpp); `pass` is forward or backward. Throws infeasible
  /// and input_error as placement, workload and device do.
  placed_schedule(const cluster&, const attention&, const strategy& s, pass_kind pass);
  /// On ranks that are placed already, wherever the strategy says.
  placed_schedule(const placed_ranks&, const attention&, const strategy& s, pass_kind pass);
  /// A schedule of one's own, for studies and tests; of the strategy the rest counts: tokens,
  /// placement, kernel.
  placed_schedule(const cluster&, const attention&, const strategy&, schedule);
  placed_schedule(const placed_ranks&, const attention&, const strategy&, schedule&&);
  /// One that is shared with other placements; of the same strategy but for its placement.
  placed_schedule(const placed_ranks&, const strategy&, std::shared_ptr<const priced_schedule>);
  placed_schedule(const placed_schedule&) = delete;

  const cluster& on() const { return cluster_; }
  const strategy& chosen() const { return strategy_; }
  const schedule& program() const { return priced_->program(); }
  const workload& work() const { return priced_->work(); }
  const transfers& communication() const { return transfers_; }
  const local_costs& costs() const { return priced_->costs(); }
  int ranks() const { return program().grid.ranks(); }
  int device_of(int rank) const { return devices_[static_cast<std::size_t>(rank)]; }
  double speed_of(int rank) const {
    return cluster_.device_speed[static_cast<std::size_t>(device_of(rank))];
  }

  /// Time of the local operation program()[op] on `rank`'s device.
  seconds local_time(std::size_t op, int rank) const {
    return local_times_ ? local_times_(op, rank) : costs().time(op, rank) / speed_of(rank);
  }
  /// Times other than the cost model's: measured ones, or a study's.
  void use_local_times(std::function<seconds(std::size_t op, int rank)> times) {
    local_times_ = std::move(times);
  }
  /// Bytes that `rank` sends in program()[op].
  double sent_bytes(std::size_t op, int rank) const {
    return sent_bytes_
               ? sent_bytes_(op, rank)
               : static_cast<double>(work().bytes_sent(program().program[op], rank).value());
  }
  /// Bytes other than those of the named data: a study's.
  void use_sent_bytes(std::function<double(std::size_t op, int rank)> bytes) {
    sent_bytes_ = std::move(bytes);
  }
  /// Times and bytes are the cost model's.
  bool is_as_modelled() const { return !local_times_ && !sent_bytes_; }
  /// All ranks take equally long for every operation, but for their devices' speed.
  bool same_on_all_ranks() const { return !local_times_ && work().same_on_all_ranks(); }

 private:
  const cluster& cluster_;
  strategy strategy_;
  std::vector<int> devices_;
  std::shared_ptr<const priced_schedule> priced_;
  transfers transfers_;
  std::function<seconds(std::size_t, int)> local_times_;
  std::function<double(std::size_t, int)> sent_bytes_;
};

}  // namespace attnsim
