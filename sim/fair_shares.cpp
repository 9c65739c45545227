#include "sim/fair_shares.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace attnsim {
namespace {

constexpr double tie = 1 + 1e-11;
constexpr double recount = -1;  // an owned_weight that no longer holds

std::int64_t fixed(double load) {
  return static_cast<std::int64_t>(load);
}

}  // namespace

fair_shares::fair_shares(std::span<const double> capacities)
    : nowhere_(static_cast<link_id>(capacities.size())) {
  require_capacities(capacities);
  const auto links = capacities.size() + 1;
  scales_.reserve(links);
  capacities_.reserve(links);
  links_.reserve(links);
  levels_.reserve(links);
  levels_before_.reserve(links);
  lists_.reserve(links);
  for (const double capacity : capacities) add_link(capacity);
  add_link(1);
  links_[nowhere_].in_region = true;  // so that it never joins
}

void fair_shares::add_link(double capacity) {
  const double scale = std::ldexp(1.0, 61 - std::ilogb(capacity));
  scales_.push_back(scale);
  capacities_.push_back(fixed(capacity * scale));
  links_.push_back({capacities_.back()});
  levels_.push_back(unlimited);
  levels_before_.push_back(unlimited);
  lists_.emplace_back();
  shares_.resize(links_.size());
}

bundle_id fair_shares::add_bundle(std::span<const link_use> path, double rate_limit) {
  const auto first = static_cast<std::uint32_t>(hops_.size());
  uses_.insert(uses_.end(), path.begin(), path.end());
  if (rate_limit < unlimited) {
    uses_.push_back({static_cast<link_id>(links_.size()), 1});
    add_link(rate_limit);
  }
  for (std::size_t i = first; i < uses_.size(); ++i) hops_.push_back({uses_[i].link, 0, 0});
  const auto path_hops = static_cast<std::uint32_t>(path.size());
  bundles_.push_back({first, static_cast<std::uint32_t>(hops_.size()), path_hops});
  return static_cast<bundle_id>(bundles_.size() - 1);
}

void fair_shares::set_flows(bundle_id id, std::uint32_t flows) {
  bundle_state& b = bundles_[id];
  b.flows = flows;
  if (b.touched) return;
  b.touched = true;
  touched_.push_back(id);
}

double fair_shares::load(link_id link) const {
  auto load = static_cast<double>(capacities_[link] - links_[link].room);
  if (owned(link) > 0) load += lists_[link].owned_weight * levels_[link];
  return load / scales_[link];
}

std::span<const link_use> fair_shares::path(bundle_id id) const {
  return {uses_.data() + bundles_[id].first_hop, bundles_[id].path_hops};
}

void fair_shares::solve() {
  changed_.clear();
  moved_.clear();
  keep_changed();
  if (touched_.empty()) return;
  std::erase_if(touched_, [this](bundle_id id) {
    if (!alone(id)) return false;
    settle_alone(id);
    return true;
  });
  if (!touched_.empty()) {
    open_region();
    fill();
    close_region();
  }
  touched_.clear();
}

// Drops touched bundles that are as they were, removes those that end alone on their links,
// attaches new ones.
void fair_shares::keep_changed() {
  std::erase_if(touched_, [this](bundle_id id) {
    bundle_state& b = bundles_[id];
    b.touched = false;
    if (b.flows == b.flows_before) return true;
    if (b.flows > 0 || !alone(id)) return false;
    settle_alone(id);
    return true;
  });
  for (const bundle_id id : touched_) {
    if (bundles_[id].flows_before == 0) attach(id);
  }
}

bool fair_shares::alone(bundle_id id) const {
  const auto path = hops(bundles_[id]);
  return std::all_of(path.begin(), path.end(),
                     [this](const hop& h) { return lists_[h.link].crossings.size() == 1; });
}

void fair_shares::settle_alone(bundle_id id) {
  bundle_state& b = bundles_[id];
  for (const hop& h : hops(b)) {
    changed_.push_back({h.link, levels_[h.link]});
    links_[h.link].room = capacities_[h.link];
    levels_[h.link] = unlimited;
  }
  if (b.flows == 0) return detach(id);
  update_weights(id);

  double level = unlimited;
  link_id slowest = none;
  for (const hop& h : hops(b)) {
    const double share = static_cast<double>(links_[h.link].room) / h.weight;
    if (share < level) {
      level = share;
      slowest = h.link;
    }
  }
  for (const hop& h : hops(b)) {
    if (h.link == slowest) continue;
    links_[h.link].room -= fixed(h.weight * level);
  }
  own(id, slowest);
  levels_[slowest] = level;
  lists_[slowest].owned_weight = lists_[slowest].weights[0];
}

void fair_shares::crossing_list::widen(std::uint32_t new_width, link_id padding) {
  std::vector<link_id> links(crossings.size() * new_width, padding);
  std::vector<double> there(crossings.size() * new_width);
  for (std::size_t i = 0; i < other_links.size(); ++i) {
    links[i / width * new_width + i % width] = other_links[i];
    there[i / width * new_width + i % width] = other_weights[i];
  }
  other_links = std::move(links);
  other_weights = std::move(there);
  width = new_width;
}

void fair_shares::crossing_list::push(const crossing& last) {
  crossings.push_back(last);
  weights.push_back(0);
  for (std::uint32_t i = 0; i < width; ++i) {
    other_links.push_back(0);
    other_weights.push_back(0);
  }
}

void fair_shares::crossing_list::pop() {
  crossings.pop_back();
  weights.pop_back();
  for (std::uint32_t i = 0; i < width; ++i) {
    other_links.pop_back();
    other_weights.pop_back();
  }
}

// Leaves the rows to write_rows().
void fair_shares::attach(bundle_id id) {
  const bundle_state& b = bundles_[id];
  for (std::uint32_t i = b.first_hop; i < b.end_hop; ++i) {
    crossing_list& list = lists_[hops_[i].link];
    hops_[i].slot = static_cast<std::uint32_t>(list.crossings.size());
    list.push({id, i});
    list.long_paths += is_long(b);
    if (!is_long(b) && other_links(b) > list.width) list.widen(other_links(b), nowhere_);
  }
}

void fair_shares::detach(bundle_id id) {
  disown(id);
  for (const hop& h : hops(bundles_[id])) {
    crossing_list& list = lists_[h.link];
    exchange(h.link, h.slot, static_cast<std::uint32_t>(list.crossings.size() - 1));
    list.pop();
    list.long_paths -= is_long(bundles_[id]);
  }
  bundles_[id].flows_before = 0;
}

void fair_shares::write_rows(bundle_id id) {
  const bundle_state& b = bundles_[id];
  for (const hop& here : hops(b)) {
    crossing_list& list = lists_[here.link];
    list.weights[here.slot] = here.weight;
    link_id* link = list.other_links.data() + list.row(here.slot);
    double* weight = list.other_weights.data() + list.row(here.slot);
    link_id* const end = link + list.width;
    for (std::uint32_t i = b.first_hop; i < b.end_hop && !is_long(b); ++i) {
      if (&hops_[i] == &here) continue;
      *link++ = hops_[i].link;
      *weight++ = hops_[i].weight;
    }
    for (; link != end; *link++ = nowhere_) *weight++ = 0;
  }
}

fair_shares::hop& fair_shares::hop_over(link_id link, const bundle_state& b) {
  const auto path = hops(b);
  return *std::find_if(path.begin(), path.end(), [&](const hop& h) { return h.link == link; });
}

void fair_shares::own(bundle_id id, link_id link) {
  bundle_state& b = bundles_[id];
  if (b.owner == link) return;
  moved_.push_back({id, b.owner});
  disown(id);
  b.owner = link;
  exchange(link, hop_over(link, b).slot, lists_[link].owned++);
  lists_[link].owned_weight = recount;
}

void fair_shares::disown(bundle_id id) {
  bundle_state& b = bundles_[id];
  if (b.owner == none) return;
  exchange(b.owner, hop_over(b.owner, b).slot, --lists_[b.owner].owned);
  lists_[b.owner].owned_weight = recount;
  b.owner = none;
}

void fair_shares::exchange(link_id link, std::uint32_t slot, std::uint32_t other) {
  if (slot == other) return;
  crossing_list& list = lists_[link];
  std::swap(list.crossings[slot], list.crossings[other]);
  std::swap(list.weights[slot], list.weights[other]);
  for (std::uint32_t i = 0; i < list.width; ++i) {
    std::swap(list.other_links[list.row(slot) + i], list.other_links[list.row(other) + i]);
    std::swap(list.other_weights[list.row(slot) + i], list.other_weights[list.row(other) + i]);
  }
  hops_[list.crossings[slot].hop].slot = slot;
  hops_[list.crossings[other].hop].slot = other;
}

// The limit of a bundle is per flow: its private link has the weight of one flow, whatever their
// number.
void fair_shares::update_weights(bundle_id id) {
  bundle_state& b = bundles_[id];
  for (std::uint32_t i = b.first_hop; i < b.end_hop; ++i) {
    const double flows = i - b.first_hop < b.path_hops ? b.flows : std::min(b.flows, 1u);
    hops_[i].weight = flows * uses_[i].weight * scales_[hops_[i].link];
  }
  b.flows_before = b.flows;
  if (b.owner != none) lists_[b.owner].owned_weight = recount;
  write_rows(id);
}

// Puts all links of changed bundles and what depends on them into the region, then changes the
// bundles.
void fair_shares::open_region() {
  region_begin_ = released_ = changed_.size();
  for (const bundle_id id : touched_) {
    for (const hop& h : hops(bundles_[id])) {
      if (!links_[h.link].in_region) join(h.link);
    }
  }
  release_owned();
  for (const bundle_id id : touched_) {
    if (bundles_[id].flows_before > 0) count_released(id, -1);
    if (bundles_[id].flows == 0) {
      detach(id);
    } else {
      update_weights(id);
      count_released(id, 1);
    }
  }
}

void fair_shares::count_released(bundle_id id, int sign) {
  for (const hop& h : hops(bundles_[id])) {
    links_[h.link].free_weight += sign * h.weight;
    links_[h.link].free += sign;
  }
  unsettled_ += sign;
}

void fair_shares::join(link_id link) {
  links_[link].in_region = true;
  changed_.push_back({link, levels_[link]});
  levels_before_[link] = levels_[link];
  levels_[link] = unlimited;
}

void fair_shares::release_owned() {
  for (; released_ < changed_.size(); ++released_) {
    const link_id owner = changed_[released_].link;
    const double level = changed_[released_].level_before;
    const crossing_list& list = lists_[owner];
    if (list.owned == 0) continue;
    const link_id* const links = list.other_links.data();
    const double* const weights = list.other_weights.data();
    for (std::size_t i = 0, end = list.row(list.owned); i < end; ++i) {
      release(links[i], weights[i], level);
    }
    for_owned_long_paths(owner, [&](const hop& h) { release(h.link, h.weight, level); });
    links_[owner].free_weight += list.owned_weight;
    links_[owner].free += list.owned;
    unsettled_ += list.owned;
  }
}

inline void fair_shares::release(link_id id, double weight, double level) {
  link_state& link = links_[id];
  link.room += fixed(weight * level);
  link.free_weight += weight;
  ++link.free;
  if (!link.in_region) join(id);
}

inline void fair_shares::occupy(link_id id, double weight, double level) {
  link_state& link = links_[id];
  link.room -= fixed(weight * level);
  link.free_weight -= weight;
  --link.free;
}

// The hops of the owned bundles without rows, except those on the owner.
template <typename Action>
void fair_shares::for_owned_long_paths(link_id owner, Action action) {
  const crossing_list& list = lists_[owner];
  if (list.long_paths == 0) return;
  for (std::uint32_t slot = 0; slot < list.owned; ++slot) {
    const bundle_state& b = bundles_[list.crossings[slot].bundle];
    if (!is_long(b)) continue;
    for (const hop& h : hops(b)) {
      if (h.link != owner) action(h);
    }
  }
}

double fair_shares::share(link_id link) const {
  return static_cast<double>(links_[link].room) / links_[link].free_weight;
}

void fair_shares::fill() {
  double floor = 0;
  enqueue_open();
  while (unsettled_ > 0) {
    const link_id link = shares_.top();
    if (links_[link].free == 0) {
      shares_.erase(link);
      continue;
    }
    double level = share(link);
    if (level <= floor * tie) {
      level = floor;
    } else if (level > shares_.top_key()) {
      shares_.set(link, level);
      if (shares_.top() != link) continue;
    }
    if (overtaken(link, level)) {
      enqueue_open();
      continue;
    }
    shares_.erase(link);
    settle(link, level);
    floor = level;
  }
  shares_.clear();
}

void fair_shares::enqueue_open() {
  for (std::size_t i = region_begin_; i < changed_.size(); ++i) {
    const link_id link = changed_[i].link;
    if (levels_[link] == unlimited && links_[link].free > 0) shares_.set(link, share(link));
  }
}

// Whether a bundle that was not released is faster than the level; then its owner has joined the
// region. Otherwise lists the released bundles that the link takes over from other owners.
bool fair_shares::overtaken(link_id link, double level) {
  taken_over_.clear();
  const crossing_list& list = lists_[link];
  if (level >= levels_before_[link] && links_[link].free == list.owned) return false;
  const double limit = level * tie;
  const double* const levels = levels_.data();
  const link_id* other = list.other_links.data() + list.row(list.owned);
  for (std::size_t slot = list.owned; slot < list.crossings.size(); ++slot) {
    double rate = unlimited;
    for (const link_id* const end = other + list.width; other != end; ++other) {
      rate = std::min(rate, levels[*other]);
    }
    if (rate <= limit) continue;
    const bundle_id id = list.crossings[slot].bundle;
    if (is_long(bundles_[id])) {
      for (const hop& h : hops(bundles_[id])) rate = std::min(rate, levels[h.link]);
      if (rate <= limit) continue;
    }
    if (rate == unlimited) {
      taken_over_.push_back(id);
    } else if (!links_[bundles_[id].owner].in_region) {
      join(bundles_[id].owner);
    }
  }
  if (released_ == changed_.size()) return false;
  release_owned();
  return true;
}

void fair_shares::settle(link_id owner, double level) {
  for (const bundle_id id : taken_over_) own(id, owner);
  crossing_list& list = lists_[owner];
  const link_id* const links = list.other_links.data();
  const double* const weights = list.other_weights.data();
  for (std::size_t i = 0, end = list.row(list.owned); i < end; ++i) {
    occupy(links[i], weights[i], level);
  }
  for_owned_long_paths(owner, [&](const hop& h) { occupy(h.link, h.weight, level); });
  levels_[owner] = level;
  if (list.owned_weight == recount) {
    const auto begin = list.weights.begin();
    list.owned_weight = std::accumulate(begin, begin + list.owned, 0.0);
  }
  links_[owner].free = 0;
  unsettled_ -= list.owned;
}

void fair_shares::close_region() {
  for (std::size_t i = region_begin_; i < changed_.size(); ++i) {
    link_state& link = links_[changed_[i].link];
    link.free_weight = 0;
    link.free = 0;
    link.in_region = false;
  }
}

}  // namespace attnsim
