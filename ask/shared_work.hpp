// What predictions on one cluster have in common, each worked out once: schedules with their costs, which clusters of the same
// device share too, ranks as they are placed with what they send each other, and limits.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/cost/known_schedules.hpp"
#include "model/cost/transfer.hpp"
#include "model/limit/limit.hpp"

namespace attnsim {

/// Not for several threads at once.
class shared_work {
 public:
  /// References are kept. `device`: the cluster's, one for all clusters that share their schedules.
  shared_work(const cluster&, known_schedules::device device, known_schedules&);
  /// Alone.
  explicit shared_work(const cluster&);
  shared_work(const shared_work&) = delete;

  const cluster& on() const { return cluster_; }

  /// Of a completed strategy. Throws as place() does.
  const placed_ranks& ranks(const strategy&);
  /// Throws as placed_schedule does.
  known_schedule schedule(const attention&, const strategy&, pass_kind);
  known_limits& limits(const attention&);

 private:
  const cluster& cluster_;
  known_schedules own_;
  known_schedules& schedules_;
  known_schedules::device device_;
  std::map<std::pair<std::string, std::vector<int>>, placed_ranks> ranks_;  ///< by placement, grid
  std::list<std::pair<attention, known_limits>> limits_;  ///< the latest asked for first
};

}  // namespace attnsim
