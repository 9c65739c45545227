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

template <typename Value>
void swap_rows(std::vector<Value>& rows, std::size_t width, std::size_t a, std::size_t b) {
  Value* const begin = rows.data();
  std::swap_ranges(begin + a * width, begin + (a + 1) * width, begin + b * width);
}

}  // namespace

fair_shares::fair_shares(std::span<const double> capacities)
    : nowhere_(static_cast<link_id>(capacities.size())) {
  require_capacities(capacities);
  const auto links = capacities.size() + 1;
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
  capacities_.push_back(fixed(capacity * scale));
  links_.push_back({capacities_.back(), scale});
  levels_.push_back(unlimited);
  levels_before_.push_back(unlimited);
  lists_.emplace_back();
}

bundle_id fair_shares::add_bundle(std::span<const link_use> path, double rate_limit) {
  const auto first = static_cast<std::uint32_t>(hops_.size());
  uses_.insert(uses_.end(), path.begin(), path.end());
  if (rate_limit < unlimited) {
    uses_.push_back({static_cast<link_id>(links_.size()), 1});
    add_link(rate_limit);
  }
  for (std::size_t i = first; i < uses_.size(); ++i) hops_.push_back({uses_[i].link, 0});
  slots_.resize(hops_.size());
  owners_.emplace_back();
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
  return load / links_[link].scale;
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
  if (owner(id) != slowest) own(slowest, 0);
  levels_[slowest] = level;
  lists_[slowest].owned_weight = hops_[owners_[id].hop].weight;
}

void fair_shares::crossing_list::fit() {
  other_links.resize(row(crossings.size()));
  if (!weighted) return;
  weights.resize(crossings.size());
  other_weights.resize(row(crossings.size()));
}

// Leaves the new rows to update_weights().
void fair_shares::attach(bundle_id id) {
  const bundle_state& b = bundles_[id];
  for (std::uint32_t i = b.first_hop; i < b.end_hop; ++i) {
    crossing_list& list = lists_[hops_[i].link];
    slots_[i] = static_cast<std::uint32_t>(list.crossings.size());
    list.crossings.push_back({id, i});
    list.long_paths += is_long(b);
    const std::uint32_t width = row_width(b);
    if (slots_[i] == 0) list.width = width;
    const bool fits = width == list.width || (list.weighted && width < list.width);
    list.width = std::max(list.width, width);
    fits ? list.fit() : write_weighted(hops_[i].link);
  }
}

void fair_shares::detach(bundle_id id) {
  disown(id);
  const bundle_state& b = bundles_[id];
  for (std::uint32_t i = b.first_hop; i < b.end_hop; ++i) {
    crossing_list& list = lists_[hops_[i].link];
    exchange(hops_[i].link, slots_[i], static_cast<std::uint32_t>(list.crossings.size() - 1));
    list.crossings.pop_back();
    list.long_paths -= is_long(b);
    list.fit();
  }
  bundles_[id].flows_before = 0;
}

// Writes all rows anew, with weights.
void fair_shares::write_weighted(link_id link) {
  crossing_list& list = lists_[link];
  list.weighted = true;
  list.fit();
  for (const auto& c : list.crossings) write_row(c.hop, bundles_[c.bundle]);
}

void fair_shares::write_row(std::uint32_t here, const bundle_state& b) {
  crossing_list& list = lists_[hops_[here].link];
  const std::uint32_t slot = slots_[here];
  std::size_t place = list.row(slot);
  const auto put = [&](const hop& other) {
    list.other_links[place] = other.link;
    if (list.weighted) list.other_weights[place] = other.weight;
    ++place;
  };
  if (list.weighted) list.weights[slot] = hops_[here].weight;
  for (std::uint32_t i = b.first_hop; i < b.end_hop && !is_long(b); ++i) {
    if (i != here) put(hops_[i]);
  }
  while (place < list.row(slot + 1)) put({nowhere_, 0});
}

void fair_shares::own(link_id link, std::uint32_t slot) {
  crossing_list& list = lists_[link];
  const auto [id, hop] = list.crossings[slot];
  moved_.push_back({id, owner(id)});
  disown(id);
  owners_[id] = {link, hop};
  exchange(link, slot, list.owned++);
  list.owned_weight = recount;
}

void fair_shares::disown(bundle_id id) {
  const auto [link, hop] = owners_[id];
  if (link == none) return;
  exchange(link, slots_[hop], --lists_[link].owned);
  lists_[link].owned_weight = recount;
  owners_[id] = {};
}

void fair_shares::exchange(link_id link, std::uint32_t slot, std::uint32_t other) {
  if (slot == other) return;
  crossing_list& list = lists_[link];
  std::swap(list.crossings[slot], list.crossings[other]);
  swap_rows(list.other_links, list.width, slot, other);
  if (list.weighted) {
    std::swap(list.weights[slot], list.weights[other]);
    swap_rows(list.other_weights, list.width, slot, other);
  }
  slots_[list.crossings[slot].hop] = slot;
  slots_[list.crossings[other].hop] = other;
}

// The limit of a bundle is per flow: its private link has the weight of one flow, whatever their
// number.
void fair_shares::update_weights(bundle_id id) {
  bundle_state& b = bundles_[id];
  for (std::uint32_t i = b.first_hop; i < b.end_hop; ++i) {
    const double flows = i - b.first_hop < b.path_hops ? b.flows : std::min(b.flows, 1u);
    hops_[i].weight = flows * uses_[i].weight * links_[hops_[i].link].scale;
  }
  b.flows_before = b.flows;
  if (owner(id) != none) lists_[owner(id)].owned_weight = recount;
  const auto path = hops(b);
  for (std::uint32_t i = b.first_hop; i < b.end_hop; ++i) {
    const link_id link = hops_[i].link;
    const bool usual = std::all_of(path.begin(), path.end(),
                                   [&](const hop& h) { return h.weight == links_[link].scale; });
    usual || lists_[link].weighted ? write_row(i, b) : write_weighted(link);
  }
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
    link_state* const links = links_.data();
    for_owned_elsewhere(owner, level, [=, this](link_id id, double weight, std::int64_t load) {
      link_state& link = links[id];
      link.room += load;
      link.free_weight += weight;
      ++link.free;
      if (!link.in_region) join(id);
    });
    links_[owner].free_weight += list.owned_weight;
    links_[owner].free += list.owned;
    unsettled_ += list.owned;
  }
}

// For all hops of the owned bundles but those on the owner: their link, weight, and load at the
// level.
template <typename Action>
void fair_shares::for_owned_elsewhere(link_id owner, double level, Action action) {
  const crossing_list& list = lists_[owner];
  const link_id* const links = list.other_links.data();
  const std::size_t end = list.row(list.owned);
  if (list.weighted) {
    const double* const weights = list.other_weights.data();
    for (std::size_t i = 0; i < end; ++i) action(links[i], weights[i], fixed(weights[i] * level));
  } else {
    const double weight = links_[owner].scale;
    const std::int64_t load = fixed(weight * level);
    for (std::size_t i = 0; i < end; ++i) action(links[i], weight, load);
  }
  if (list.long_paths == 0) return;
  for (std::uint32_t slot = 0; slot < list.owned; ++slot) {
    const bundle_state& b = bundles_[list.crossings[slot].bundle];
    if (!is_long(b)) continue;
    for (const hop& h : hops(b)) {
      if (h.link != owner) action(h.link, h.weight, fixed(h.weight * level));
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
      shares_.pop();
      continue;
    }
    double level = share(link);
    if (level <= floor * tie) {
      level = floor;
    } else if (level > shares_.top_key()) {
      shares_.raise_top(level);
      if (shares_.top() != link) continue;
    }
    if (overtaken(link, level, floor)) {
      enqueue_open();
      continue;
    }
    shares_.pop();
    settle(link, level);
    floor = level;
  }
}

void fair_shares::enqueue_open() {
  shares_.clear();
  for (std::size_t i = region_begin_; i < changed_.size(); ++i) {
    const link_id link = changed_[i].link;
    if (levels_[link] == unlimited && links_[link].free > 0) shares_.add(link, share(link));
  }
  shares_.arrange();
}

// Whether a bundle that was not released is faster than the level; then its owner has joined the
// region. Otherwise lists the released bundles that the link takes over from other owners. All
// levels set so far are at most `floor`.
bool fair_shares::overtaken(link_id link, double level, double floor) {
  taken_over_.clear();
  crossing_list& list = lists_[link];
  const double limit = level * tie;
  if (list.fastest_other <= limit && links_[link].free == list.owned) {
    list.fastest_other = std::max(list.fastest_other, floor);
    return false;
  }
  list.fastest_other =
      list.width == 1 ? look_for_faster<1>(link, limit) : look_for_faster(link, limit);
  if (released_ == changed_.size()) return false;
  release_owned();
  return true;
}

// Deals with the bundles of other owners that are faster than the limit, and returns the rate of the
// fastest that is not. A width that the compiler knows takes half the time.
template <std::uint32_t known_width>
double fair_shares::look_for_faster(link_id link, double limit) {
  const crossing_list& list = lists_[link];
  const std::uint32_t width = known_width > 0 ? known_width : list.width;
  const double* const levels = levels_.data();
  const link_id* other = list.other_links.data() + list.row(list.owned);
  double fastest = 0;
  const auto end = static_cast<std::uint32_t>(list.crossings.size());
  for (std::uint32_t slot = list.owned; slot < end; ++slot) {
    double rate = unlimited;
    for (std::uint32_t i = 0; i < width; ++i) {
      const double there = levels[*other++];
      rate = there < rate ? there : rate;
    }
    const bundle_id id = list.crossings[slot].bundle;
    if (rate > limit && list.long_paths > 0) {
      for (const hop& h : hops(bundles_[id])) rate = std::min(rate, levels[h.link]);
    }
    if (rate <= limit) {
      fastest = rate > fastest ? rate : fastest;
    } else if (rate == unlimited) {
      taken_over_.push_back(slot);
    } else if (!links_[owner(id)].in_region) {
      join(owner(id));
    }
  }
  return fastest;
}

void fair_shares::settle(link_id owner, double level) {
  for (const std::uint32_t slot : taken_over_) own(owner, slot);
  crossing_list& list = lists_[owner];
  link_state* const links = links_.data();
  for_owned_elsewhere(owner, level, [=](link_id id, double weight, std::int64_t load) {
    links[id].room -= load;
    links[id].free_weight -= weight;
    --links[id].free;
  });
  levels_[owner] = level;
  if (list.owned_weight == recount) {
    const auto begin = list.weights.begin();
    list.owned_weight =
        list.weighted ? std::reduce(begin, begin + list.owned) : list.owned * links_[owner].scale;
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
