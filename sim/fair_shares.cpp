#include "sim/fair_shares.hpp"

#include <algorithm>
#include <cmath>

namespace attnsim {
namespace {

constexpr double tie = 1 + 1e-11;

std::int64_t fixed(double rate, double scale) {
  return static_cast<std::int64_t>(rate * scale);
}

}  // namespace

fair_shares::fair_shares(std::span<const double> capacities) {
  require_capacities(capacities);
  for (const double capacity : capacities) add_link(capacity);
}

void fair_shares::add_link(double capacity) {
  const double scale = std::ldexp(1.0, 61 - std::ilogb(capacity));
  capacities_.push_back(fixed(capacity, scale));
  links_.push_back({capacities_.back(), scale});
  levels_.push_back(unlimited);
  crossings_.emplace_back();
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
  return static_cast<double>(capacities_[link] - links_[link].room) / links_[link].scale;
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
  return std::ranges::all_of(hops(bundles_[id]),
                             [this](const hop& h) { return crossings_[h.link].list.size() == 1; });
}

void fair_shares::settle_alone(bundle_id id) {
  bundle_state& b = bundles_[id];
  for (const hop& h : hops(b)) {
    changed_.push_back({h.link, levels_[h.link]});
    links_[h.link].room = capacities_[h.link];
    levels_[h.link] = unlimited;
  }
  update_weights(id);
  if (b.flows == 0) return detach(id);

  double level = unlimited;
  link_id slowest = none;
  for (const hop& h : hops(b)) {
    const link_state& link = links_[h.link];
    const double share = static_cast<double>(link.room) / (h.weight * link.scale);
    if (share < level) {
      level = share;
      slowest = h.link;
    }
  }
  levels_[slowest] = level;
  for (const hop& h : hops(b)) {
    links_[h.link].room -= fixed(h.weight * level, links_[h.link].scale);
  }
  own(id, slowest);
}

void fair_shares::attach(bundle_id id) {
  const bundle_state& b = bundles_[id];
  for (std::uint32_t i = b.first_hop; i < b.end_hop; ++i) {
    std::vector<crossing>& list = crossings_[hops_[i].link].list;
    hops_[i].slot = static_cast<std::uint32_t>(list.size());
    list.push_back({id, b.first_hop, b.end_hop, i});
  }
}

void fair_shares::detach(bundle_id id) {
  disown(id);
  for (const hop& h : hops(bundles_[id])) {
    std::vector<crossing>& list = crossings_[h.link].list;
    exchange(h.link, h.slot, static_cast<std::uint32_t>(list.size() - 1));
    list.pop_back();
  }
}

void fair_shares::own(bundle_id id, link_id link) {
  bundle_state& b = bundles_[id];
  if (b.owner == link) return;
  moved_.push_back({id, b.owner});
  disown(id);
  b.owner = link;
  const auto h = std::ranges::find(hops(b), link, &hop::link);
  exchange(link, h->slot, crossings_[link].owned++);
}

void fair_shares::disown(bundle_id id) {
  bundle_state& b = bundles_[id];
  if (b.owner == none) return;
  const auto h = std::ranges::find(hops(b), b.owner, &hop::link);
  exchange(b.owner, h->slot, --crossings_[b.owner].owned);
  b.owner = none;
}

void fair_shares::exchange(link_id link, std::uint32_t slot, std::uint32_t other) {
  std::vector<crossing>& list = crossings_[link].list;
  std::swap(list[slot], list[other]);
  hops_[list[slot].hop].slot = slot;
  hops_[list[other].hop].slot = other;
}

// The limit of a bundle is per flow: its private link has the weight of one flow, whatever their
// number.
void fair_shares::update_weights(bundle_id id) {
  bundle_state& b = bundles_[id];
  for (std::uint32_t i = b.first_hop; i < b.end_hop; ++i) {
    const double flows = i - b.first_hop < b.path_hops ? b.flows : std::min(b.flows, 1u);
    hops_[i].weight = flows * uses_[i].weight;
  }
  b.flows_before = b.flows;
}

// Puts all links of changed bundles and what depends on them into the region, then changes the
// bundles.
void fair_shares::open_region() {
  region_begin_ = released_ = changed_.size();
  for (const bundle_id id : touched_) {
    for (const hop& h : hops(bundles_[id])) join(h.link);
  }
  release_owned();
  for (const bundle_id id : touched_) {
    const bool fresh = bundles_[id].flows_before == 0;
    for (const hop& h : hops(bundles_[id])) {
      links_[h.link].free_weight -= h.weight;
      links_[h.link].free -= fresh ? 0 : 1;
    }
    update_weights(id);
    if (bundles_[id].flows == 0) {
      detach(id);
      continue;
    }
    for (const hop& h : hops(bundles_[id])) {
      links_[h.link].free_weight += h.weight;
      ++links_[h.link].free;
    }
  }
}

void fair_shares::join(link_id link) {
  if (links_[link].in_region) return;
  links_[link].in_region = true;
  changed_.push_back({link, levels_[link]});
  levels_[link] = unlimited;
}

void fair_shares::release_owned() {
  for (; released_ < changed_.size(); ++released_) {
    const auto [owner, level] = changed_[released_];
    const crossing_list& all = crossings_[owner];
    for (std::uint32_t i = 0; i < all.owned; ++i) {
      for (const hop& h : hops(all.list[i])) {
        link_state& link = links_[h.link];
        link.room += fixed(h.weight * level, link.scale);
        link.free_weight += h.weight;
        ++link.free;
        join(h.link);
      }
    }
  }
}

double fair_shares::share(link_id id) const {
  const link_state& link = links_[id];
  return static_cast<double>(link.room) / (link.free_weight * link.scale);
}

void fair_shares::fill() {
  double floor = 0;
  enqueue_open();
  while (!shares_.empty()) {
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
  const double limit = level * tie;
  const crossing_list& all = crossings_[link];
  taken_over_.clear();
  for (std::size_t i = all.owned; i < all.list.size(); ++i) {
    double rate = unlimited;
    for (const hop& h : hops(all.list[i])) rate = std::min(rate, levels_[h.link]);
    if (rate <= limit) continue;
    const bundle_id id = all.list[i].bundle;
    if (rate < unlimited) {
      join(bundles_[id].owner);
    } else {
      taken_over_.push_back(id);
    }
  }
  if (released_ == changed_.size()) return false;
  release_owned();
  return true;
}

void fair_shares::settle(link_id owner, double level) {
  levels_[owner] = level;
  for (const bundle_id id : taken_over_) own(id, owner);
  const crossing_list& all = crossings_[owner];
  for (std::uint32_t i = 0; i < all.owned; ++i) {
    for (const hop& h : hops(all.list[i])) {
      link_state& link = links_[h.link];
      link.room -= fixed(h.weight * level, link.scale);
      link.free_weight -= h.weight;
      --link.free;
    }
  }
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
