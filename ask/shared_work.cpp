#include "ask/shared_work.hpp"

#include <algorithm>

#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"

namespace attnsim {

shared_work::shared_work(const cluster& c, known_schedules::device device,
                         known_schedules& schedules)
    : cluster_(c), schedules_(schedules), device_(std::move(device)) {}

shared_work::shared_work(const cluster& c)
    : cluster_(c), schedules_(own_), device_(known_schedules::device(), &c.device) {}

const placed_ranks& shared_work::ranks(const strategy& s) {
  const auto grid = schedule_grid(s);
  std::pair key(s.placement, grid.extents());
  const auto known = ranks_.find(key);
  if (known != ranks_.end()) return known->second;
  auto devices = place(s.placement, grid, cluster_);
  return ranks_.try_emplace(std::move(key), cluster_, std::move(devices)).first->second;
}

known_schedule shared_work::schedule(const attention& a, const strategy& s, pass_kind pass) {
  return schedules_.of(device_, a, informed(s, cluster_, a, pass), pass);
}

known_limits& shared_work::limits(const attention& a) {
  constexpr std::size_t most = 64;  // problems
  const auto known =
      std::find_if(limits_.begin(), limits_.end(), [&](const auto& one) { return one.first == a; });
  if (known != limits_.end()) {
    limits_.splice(limits_.begin(), limits_, known);
  } else {
    limits_.emplace_front(std::piecewise_construct, std::forward_as_tuple(a),
                          std::forward_as_tuple(cluster_, a));
    if (limits_.size() > most) limits_.pop_back();
  }
  return limits_.front().second;
}

}  // namespace attnsim
