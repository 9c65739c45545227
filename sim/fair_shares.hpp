// Weighted max-min fair rates, kept exact while flows come and go, at a cost that follows what a
// change touches.
//
// Bundles. Flows of the same path and limit always have the same rate; they form a bundle. A rate
// limit is one more link, private to the bundle.
//
// Levels. The level of a full link is the rate of its fastest bundles; other links have none.
// Max-min fairness says: every bundle has a bottleneck, a link of its path whose level is its rate.
// One such link is its owner. So one number per link holds all rates, and a link's level follows
// from what it does not own:
//
//     level = (capacity - sum of weight * rate over its other bundles) / sum of owned weights
//
// Re-solving. A change releases the bundles it may affect, and these are filled anew:
//
//  1. The links of every changed bundle join the region. A link that joins releases the bundles it
//     owns, and all links of a released bundle join.
//  2. The open link of the region with the smallest share, (capacity - fixed load) / released
//     weight, gets it as its level; the released bundles on it settle there. Shares only grow while
//     bundles settle, so levels are set in ascending order.
//  3. If a bundle that was not released is faster than the level about to be set, its owner joins
//     first, and the shares are taken anew.
//
// Why this is exact. The certificate of max-min is local: no load above a capacity, and a bottleneck
// for every bundle. A bundle that was never released keeps its rate, and its owner is outside the
// region, so no released bundle crosses the owner (1): it is as full as before and nothing on it
// became faster. A released bundle settles at a link that is then full; no bundle there is faster,
// neither those settled before (2) nor those never released (3). And step 3 disturbs nothing
// settled. What it releases is faster than all levels set so far, hence would have been found had
// it crossed a settled link; and an open link's share stays above these levels, because it becomes
// an average of its former share and of rates above them.
//
// Numbers. Loads are 64-bit fixed point, with the capacity between 2^61 and 2^62. So sums do not
// depend on their order, and taking back what was added leaves exactly nothing: no drift, however
// long the run, and equal situations get bit-equal rates. A level's relative error is below
// (n * 2^-61 + 2^-51) * capacity / owned load with n bundles on the link: 1e-10 for a link that
// 10^4 equal bundles share, if all but one settle elsewhere. Sums of weights are doubles: exact for
// whole numbers and fractions of a power of two, else to a few ulp. Levels that one solve finds
// closer than 1e-11 relative are ties and made equal.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/lazy_heap.hpp"
#include "sim/link_use.hpp"

namespace attnsim {

using bundle_id = std::uint32_t;

class fair_shares {
 public:
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

  /// A link in whose level or set of owned bundles the last solve may have changed something.
  struct change {
    link_id link;
    double level_before;
  };
  /// A bundle that the last solve gave to another owner; `from` is `none` for a bundle that had no
  /// flows.
  struct move {
    bundle_id bundle;
    link_id from;
  };

  /// Links 0 .. capacities.size() - 1; capacities in bytes/s.
  explicit fair_shares(std::span<const double> capacities);

  /// A new bundle, of no flows yet. The path has no link twice (merged_path) unless it has no links
  /// at all; then there is a limit.
  bundle_id add_bundle(std::span<const link_use> path, double rate_limit = unlimited);

  /// How many flows the bundle has from the next solve on. O(1).
  void set_flows(bundle_id bundle, std::uint32_t flows);

  /// Makes all rates max-min fair for the flows set so far, and reports what changed in changed()
  /// and moved(). A bundle alone on its links costs O(path); otherwise the cost is linear in the
  /// bundles on the region's links.
  void solve();
  std::span<const change> changed() const { return changed_; }
  std::span<const move> moved() const { return moved_; }

  /// As of the last solve. Number of links, the private ones of limits included (they come last).
  std::size_t links() const { return links_.size(); }
  /// The rate of each flow that the link holds back in bytes/s; infinity where the link is nobody's
  /// bottleneck.
  double level(link_id link) const { return levels_[link]; }
  /// The sum of weight * rate over all flows on the link in bytes/s.
  double load(link_id link) const;
  /// The link that determines the bundle's rate, level(owner); `none` for a bundle without flows.
  link_id owner(bundle_id bundle) const { return owners_[bundle].link; }
  std::uint32_t owned(link_id link) const { return lists_[link].owned; }
  bundle_id owned(link_id link, std::uint32_t i) const { return lists_[link].crossings[i].bundle; }

  /// The path as it was added, with the weight of one flow.
  std::span<const link_use> path(bundle_id bundle) const;

 private:
  struct hop {
    link_id link;
    double weight;  // of all flows of the bundle, times the link's scale
  };
  struct bundle_state {
    std::uint32_t first_hop;
    std::uint32_t end_hop;
    std::uint32_t path_hops;  // without the private link of the limit
    std::uint32_t flows = 0;
    std::uint32_t flows_before = 0;  // at the last solve
    bool touched = false;
  };
  struct ownership {
    link_id link = none;
    std::uint32_t hop = 0;
  };
  struct link_state {
    std::int64_t room;       // capacity not taken by settled bundles of other owners, times scale
    double scale;            // a power of two: capacity * scale is in [2^61, 2^62)
    double free_weight = 0;  // of the released bundles, times scale
    std::uint32_t free = 0;  // how many of them
    bool in_region = false;
  };
  // The bundles that cross a link, the owned ones first. What filling needs of a bundle lies in rows,
  // so that it walks through memory once: its weight here, and `width` other links of its path with
  // its weights there, padded with nowhere_. All weights are times the scale of their link. Paths
  // of more than longest_row other links (collectives) have empty rows: see their hops.
  //
  // Most lists of large networks need no weights, and a quarter of the memory: single flows, paths
  // of one length and links of like capacity, so that all weights are the scale of this link.
  struct crossing_list {
    struct crossing {
      bundle_id bundle;
      std::uint32_t hop;  // the one on this link
    };
    std::vector<link_id> other_links;
    std::uint32_t width = 0;
    std::uint32_t owned = 0;
    std::uint32_t long_paths = 0;
    bool weighted = false;
    double owned_weight = 0;
    double fastest_other = 0;  // at least the rates of bundles of other owners, while owned > 0
    std::vector<crossing> crossings;
    std::vector<double> weights;
    std::vector<double> other_weights;

    std::size_t row(std::size_t slot) const { return slot * width; }
    void fit();  // makes room for the rows of all crossings
  };

  static constexpr std::uint32_t longest_row = 8;

  void add_link(double capacity);
  static std::uint32_t other_links(const bundle_state& b) { return b.end_hop - b.first_hop - 1; }
  static bool is_long(const bundle_state& b) { return other_links(b) > longest_row; }
  static std::uint32_t row_width(const bundle_state& b) { return is_long(b) ? 0 : other_links(b); }
  std::span<hop> hops(const bundle_state& b) {
    return {hops_.data() + b.first_hop, hops_.data() + b.end_hop};
  }
  std::span<const hop> hops(const bundle_state& b) const {
    return {hops_.data() + b.first_hop, hops_.data() + b.end_hop};
  }
  double share(link_id link) const;

  void attach(bundle_id id);
  void detach(bundle_id id);
  void own(link_id link, std::uint32_t slot);
  void disown(bundle_id id);
  void exchange(link_id link, std::uint32_t slot, std::uint32_t other);
  void write_weighted(link_id link);
  void write_row(std::uint32_t here, const bundle_state& b);
  void update_weights(bundle_id id);

  void keep_changed();
  bool alone(bundle_id id) const;
  void settle_alone(bundle_id id);

  void open_region();
  void count_released(bundle_id id, int sign);
  void join(link_id link);
  void release_owned();
  template <typename Action>
  void for_owned_elsewhere(link_id owner, double level, Action action);
  void fill();
  void enqueue_open();
  bool overtaken(link_id link, double level, double floor);
  template <std::uint32_t known_width = 0>
  double look_for_faster(link_id link, double limit);
  void settle(link_id link, double level);
  void close_region();

  link_id nowhere_;                    // carries nothing and never joins a region: it pads rows
  std::vector<double> levels_;         // infinity: none, or open
  std::vector<double> levels_before_;  // of links in the region
  std::vector<link_state> links_;
  std::vector<std::int64_t> capacities_;  // times scale
  std::vector<crossing_list> lists_;
  std::vector<bundle_state> bundles_;
  std::vector<hop> hops_;
  // Apart from the above, as most bundles that an event touches only change their owner.
  std::vector<ownership> owners_;     // of bundles
  std::vector<std::uint32_t> slots_;  // of hops: where their link lists the bundle
  std::vector<link_use> uses_;        // of hops_, for one flow

  std::vector<bundle_id> touched_;
  std::vector<change> changed_;  // bundles alone first, then the region
  std::size_t region_begin_ = 0;
  std::uint32_t unsettled_ = 0;  // released bundles
  std::size_t released_ = 0;     // the links before have released their bundles
  lazy_heap shares_;
  std::vector<std::uint32_t> taken_over_;  // slots
  std::vector<move> moved_;
};

}  // namespace attnsim
