#include "sim/phases.hpp"

#include <algorithm>
#include <stdexcept>

namespace attnsim {
namespace {

/// The most used link of a flow during a phase, if that beats the one found so far.
void consider(const placed_schedule& i, const timeline& t, int pattern, int flow, phase& p) {
  if (flow < 0) return;
  for (const auto& use : i.communication().form(pattern, flow).uses) {
    const auto& load = t.links[static_cast<std::size_t>(t.load_of[use.link])];
    const double possible =
        i.on().network.links()[use.link].capacity.value() * (p.end - p.start).value();
    const double utilisation = bytes_between(load.samples, p.start, p.end) / possible;
    if (utilisation <= p.utilisation) continue;
    p.utilisation = utilisation;
    p.bottleneck = use.link;
  }
}

}  // namespace

double bytes_between(const std::vector<load_change>& changes, seconds start, seconds end) {
  const auto after = [](seconds time, const load_change& c) { return time < c.since; };
  auto next = std::upper_bound(changes.begin(), changes.end(), start, after);
  double bytes = 0;
  while (next != changes.begin() && start < end) {
    const auto until = next == changes.end() ? end : std::min(end, next->since);
    bytes += std::prev(next)->rate * (until - start).value();
    start = until;
    if (next != changes.end()) ++next;
  }
  return bytes;
}

std::vector<phase> phases(const placed_schedule& i, const timeline& t, int rank) {
  const auto rank_class = static_cast<std::size_t>(t.class_of[static_cast<std::size_t>(rank)]);
  const auto& recorded = t.ranks[rank_class];
  const bool has_loads = !t.links.empty() && !t.links.front().samples.empty();
  if (recorded.intervals.empty() || !has_loads) {
    throw std::invalid_argument("phases: expected a run with intervals and links recorded");
  }
  std::vector<phase> result;
  for (const auto& v : recorded.intervals) {
    const int pattern = i.communication().pattern_of(v.operation);
    if (pattern < 0) continue;
    phase p{.operation = v.operation, .start = v.start, .end = v.end};
    consider(i, t, pattern, i.communication().sent(pattern, rank), p);
    consider(i, t, pattern, i.communication().received(pattern, rank), p);
    result.push_back(p);
  }
  return result;
}

}  // namespace attnsim
