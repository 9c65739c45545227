#include "sim/flow_network.hpp"

#include <algorithm>
#include <cmath>

#include "sim/refuse.hpp"

namespace attnsim {
namespace {

constexpr double second_of_service = 1;

}  // namespace

flow_network::flow_network(std::vector<double> capacities)
    : shares_(capacities), public_links_(capacities.size()), links_(capacities.size()) {
  completions_.resize(links_.size());
}

path_id flow_network::add_path(std::span<const link_use> path) {
  paths_.push_back(shares_.add_bundle(merged_path(path, public_links_)));
  bundles_.emplace_back();
  return static_cast<path_id>(paths_.size() - 1);
}

bundle_id flow_network::bundle_of(path_id path, double rate_limit) {
  if (path >= paths_.size())
    refuse("flow_network: path ", path, ": expected a number below ", paths_.size());
  require_rate_limit(rate_limit);
  if (rate_limit == unlimited) return paths_[path];
  const auto [place, added] = limited_.try_emplace({path, rate_limit}, bundles_.size());
  if (added) {
    const auto links = shares_.path(paths_[path]);
    shares_.add_bundle(std::vector(links.begin(), links.end()), rate_limit);
    bundles_.emplace_back();
    links_.resize(shares_.links());
    completions_.resize(shares_.links());
  }
  return place->second;
}

void flow_network::start(picoseconds now, flow_tag tag, path_id path, double bytes,
                         double rate_limit) {
  const bundle_id id = bundle_of(path, rate_limit);
  if (!(bytes >= 0 && std::isfinite(bytes))) {
    refuse("flow_network: flow of ", bytes, " B: expected a finite number, 0 or more");
  }
  advance(now);
  ++flows_;
  const bool on_links = rate_limit < unlimited || !shares_.path(id).empty();
  if (bytes == 0 || !on_links) {
    instant_.push_back({sequence_++, tag});
    return;
  }
  bundle_state& bundle = bundles_[id];
  if (bundle.flows.empty() || moved_each(id) > rate_of(id) * second_of_service) recount(id);
  bundle.flows.push_back({moved_each(id) + bytes, bytes, sequence_++, tag});
  std::push_heap(bundle.flows.begin(), bundle.flows.end());
  disturb(id);
}

// Restarts the bundle's count of bytes per flow at 0.
void flow_network::recount(bundle_id id) {
  const double moved = moved_each(id);
  for (flow& f : bundles_[id].flows) f.end -= moved;
  bundles_[id].origin += moved;
}

picoseconds flow_network::next_completion() {
  if (!instant_.empty()) return now_;
  solve();
  return completions_.empty() ? never : completions_.top_key();
}

void flow_network::complete(picoseconds now, std::vector<flow_tag>& done) {
  advance(now);
  solve();
  finished_.swap(instant_);
  while (!completions_.empty() && completions_.top_key() <= now) {
    const link_id link = completions_.top();
    completions_.erase(link);
    complete_on(link, now);
  }
  std::sort(finished_.begin(), finished_.end(),
            [](const finished& a, const finished& b) { return a.sequence < b.sequence; });
  for (const finished& f : finished_) done.push_back(f.tag);
  flows_ -= finished_.size();
  finished_.clear();
}

void flow_network::complete_on(link_id link, picoseconds now) {
  std::vector<waiting>& queue = links_[link].queue;
  while (!queue.empty() && (outdated(queue.front()) || time_of(link, queue.front().end) <= now)) {
    const waiting first = queue.front();
    std::pop_heap(queue.begin(), queue.end());
    queue.pop_back();
    if (outdated(first)) continue;
    bundle_state& bundle = bundles_[first.bundle];
    ++bundle.version;
    while (!bundle.flows.empty() &&
           time_of(link, bundle.origin + bundle.flows.front().end) <= now) {
      complete_first(first.bundle);
    }
    disturb(first.bundle);
  }
  stale_.push_back(link);
}

void flow_network::complete_first(bundle_id id) {
  std::vector<flow>& flows = bundles_[id].flows;
  const flow& first = flows.front();
  finished_.push_back({first.sequence, first.tag});
  bundles_[id].completed += first.bytes;
  std::pop_heap(flows.begin(), flows.end());
  flows.pop_back();
}

double flow_network::rate(path_id path, double rate_limit) {
  const bundle_id id = bundle_of(path, rate_limit);
  solve();
  return rate_of(id);
}

std::vector<double> flow_network::bytes_carried(picoseconds now) {
  advance(now);
  std::vector<double> bytes(public_links_);
  for (bundle_id id = 0; id < bundles_.size(); ++id) {
    double moved = bundles_[id].completed;
    for (const flow& f : bundles_[id].flows) moved += moved_each(id) - (f.end - f.bytes);
    for (const link_use& use : shares_.path(id)) bytes[use.link] += use.weight * moved;
  }
  return bytes;
}

void flow_network::record(link_id link) {
  if (link >= public_links_)
    refuse("flow_network: link ", link, ": expected a number below ", public_links_);
  solve();
  records_.resize(public_links_);
  links_[link].is_recorded = true;
  records_[link].push_back({now_, shares_.load(link)});
}

std::span<const load_sample> flow_network::recorded(link_id link) {
  if (link >= public_links_)
    refuse("flow_network: link ", link, ": expected a number below ", public_links_);
  solve();
  records_.resize(public_links_);
  return records_[link];
}

void flow_network::advance(picoseconds now) {
  if (now == now_) return;
  if (now < now_) refuse("flow_network: time ", now, " ps: expected ", now_, " ps or later");
  const picoseconds next = next_completion();
  if (now > next) refuse("flow_network: time ", now, " ps: flows complete at ", next, " ps first");
  now_ = now;
}

void flow_network::solve() {
  shares_.solve();
  for (const fair_shares::change& change : shares_.changed()) catch_up(change);
  for (const fair_shares::move& move : shares_.moved()) {
    bundle_state& bundle = bundles_[move.bundle];
    const double moved =
        move.from == fair_shares::none ? 0 : links_[move.from].served - bundle.origin;
    bundle.origin = links_[shares_.owner(move.bundle)].served - moved;
    mark_restless(move.bundle);
  }
  for (const bundle_id id : restless_) {
    bundles_[id].restless = false;
    if (!bundles_[id].flows.empty()) enqueue_first(id);
  }
  restless_.clear();
  for (const fair_shares::change& change : shares_.changed()) schedule(change.link);
  for (const link_id link : stale_) schedule(link);
  stale_.clear();
}

void flow_network::catch_up(const fair_shares::change& change) {
  link_state& link = links_[change.link];
  if (change.level_before < unlimited) {
    link.served += change.level_before * to_seconds(now_ - link.since);
  }
  link.since = now_;
}

void flow_network::enqueue_first(bundle_id id) {
  bundle_state& bundle = bundles_[id];
  const link_id owner = shares_.owner(id);
  std::vector<waiting>& queue = links_[owner].queue;
  queue.push_back({bundle.origin + bundle.flows.front().end, id, ++bundle.version});
  std::push_heap(queue.begin(), queue.end());
  stale_.push_back(owner);
}

// Brings the link's entry in completions_ up to date.
void flow_network::schedule(link_id id) {
  link_state& link = links_[id];
  if (link.is_recorded) note_load(id);
  if (link.queue.empty()) return completions_.erase(id);
  if (link.served > shares_.level(id) * second_of_service ||
      link.queue.size() > 2 * shares_.owned(id) + 8) {
    restart_count(id);
  }
  while (!link.queue.empty() && outdated(link.queue.front())) {
    std::pop_heap(link.queue.begin(), link.queue.end());
    link.queue.pop_back();
  }
  const picoseconds next = link.queue.empty() ? never : time_of(id, link.queue.front().end);
  next == never ? completions_.erase(id) : completions_.set(id, next);
}

// Sets V(link) to 0 and rebuilds the queue without outdated entries.
void flow_network::restart_count(link_id id) {
  link_state& link = links_[id];
  link.queue.clear();
  for (std::uint32_t i = 0; i < shares_.owned(id); ++i) {
    const bundle_id owned = shares_.owned(id, i);
    bundle_state& bundle = bundles_[owned];
    bundle.origin -= link.served;
    link.queue.push_back({bundle.origin + bundle.flows.front().end, owned, ++bundle.version});
  }
  std::make_heap(link.queue.begin(), link.queue.end());
  link.served = 0;
}

void flow_network::note_load(link_id link) {
  std::vector<load_sample>& samples = records_[link];
  const double load = shares_.load(link);
  if (samples.back().rate == load) return;
  if (samples.back().since == now_) samples.pop_back();
  samples.push_back({now_, load});
}

void flow_network::disturb(bundle_id id) {
  shares_.set_flows(id, static_cast<std::uint32_t>(bundles_[id].flows.size()));
  mark_restless(id);
}

// Its first flow is to be queued anew once rates are solved.
void flow_network::mark_restless(bundle_id id) {
  bundle_state& bundle = bundles_[id];
  if (bundle.restless) return;
  bundle.restless = true;
  restless_.push_back(id);
}

double flow_network::rate_of(bundle_id id) const {
  const link_id owner = shares_.owner(id);
  return owner == fair_shares::none ? 0 : shares_.level(owner);
}

double flow_network::moved_each(bundle_id id) const {
  const link_id owner = shares_.owner(id);
  if (owner == fair_shares::none) return 0;
  const link_state& link = links_[owner];
  return link.served + shares_.level(owner) * to_seconds(now_ - link.since) - bundles_[id].origin;
}

picoseconds flow_network::time_of(link_id id, double end) const {
  const link_state& link = links_[id];
  const picoseconds wait = to_picoseconds((end - link.served) / shares_.level(id));
  return later(link.since, std::max<picoseconds>(wait, 0));
}

}  // namespace attnsim
