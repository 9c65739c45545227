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

#include "sim/index_heap.hpp"
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
  link_id owner(bundle_id bundle) const { return bundles_[bundle].owner; }
  std::uint32_t owned(link_id link) const { return lists_[link].owned; }
  bundle_id owned(link_id link, std::uint32_t i) const { return lists_[link].crossings[i].bundle; }

  /// The path as it was added, with the weight of one flow.
  std::span<const link_use> path(bundle_id bundle) const;

 private:
  struct hop {
    link_id link;
    std::uint32_t slot;  // where the link lists this bundle
    double weight;       // of all flows of the bundle, times the link's scale
  };
  struct bundle_state {
    std::uint32_t first_hop;
    std::uint32_t end_hop;
    std::uint32_t path_hops;  // without the private link of the limit
    std::uint32_t flows = 0;
    std::uint32_t flows_before = 0;  // at the last solve
    link_id owner = none;
    bool touched = false;
  };
  struct link_state {
    std::int64_t room;       // capacity not taken by settled bundles of other owners, times scale
    double free_weight = 0;  // of the released bundles, times scale
    std::uint32_t free = 0;  // how many of them
    bool in_region = false;
  };
  // The bundles that cross a link, the owned ones first. What filling needs of a bundle lies in rows,
  // so that it walks through memory once: its weight here, and `width` other links of its path with
  // its weights there, padded with nowhere_. All weights are times the scale of their link. Paths
  // of more than longest_row other links (collectives) have empty rows: see their hops.
  struct crossing_list {
    struct crossing {
      bundle_id bundle;
      std::uint32_t hop;  // the one on this link
    };
    std::vector<crossing> crossings;
    std::vector<double> weights;
    std::vector<link_id> other_links;
    std::vector<double> other_weights;
    std::uint32_t width = 0;
    std::uint32_t long_paths = 0;
    std::uint32_t owned = 0;
    double owned_weight = 0;

    std::size_t row(std::size_t slot) const { return slot * width; }
    void widen(std::uint32_t new_width, link_id padding);
    void push(const crossing& last);
    void pop();
  };

  static constexpr std::uint32_t longest_row = 8;

  void add_link(double capacity);
  static std::uint32_t other_links(const bundle_state& b) { return b.end_hop - b.first_hop - 1; }
  static bool is_long(const bundle_state& b) { return other_links(b) > longest_row; }
  std::span<hop> hops(const bundle_state& b) {
    return {hops_.data() + b.first_hop, hops_.data() + b.end_hop};
  }
  std::span<const hop> hops(const bundle_state& b) const {
    return {hops_.data() + b.first_hop, hops_.data() + b.end_hop};
  }
  hop& hop_over(link_id link, const bundle_state& b);
  double share(link_id link) const;

  void attach(bundle_id id);
  void detach(bundle_id id);
  void own(bundle_id id, link_id link);
  void disown(bundle_id id);
  void exchange(link_id link, std::uint32_t slot, std::uint32_t other);
  void write_rows(bundle_id id);
  void update_weights(bundle_id id);

  void keep_changed();
  bool alone(bundle_id id) const;
  void settle_alone(bundle_id id);

  void open_region();
  void count_released(bundle_id id, int sign);
  void join(link_id link);
  void release_owned();
  void release(link_id link, double weight, double level);
  void occupy(link_id link, double weight, double level);
  template <typename Action>
  void for_owned_long_paths(link_id owner, Action action);
  void fill();
  void enqueue_open();
  bool overtaken(link_id link, double level);
  void settle(link_id link, double level);
  void close_region();

  link_id nowhere_;                    // carries nothing and never joins a region: it pads rows
  std::vector<double> levels_;         // infinity: none, or open
  std::vector<double> levels_before_;  // of links in the region
  std::vector<link_state> links_;
  std::vector<std::int64_t> capacities_;  // times scale
  std::vector<double> scales_;            // powers of two: capacity * scale is in [2^61, 2^62)
  std::vector<crossing_list> lists_;
  std::vector<bundle_state> bundles_;
  std::vector<hop> hops_;
  std::vector<link_use> uses_;  // of hops_, for one flow

  std::vector<bundle_id> touched_;
  std::vector<change> changed_;  // bundles alone first, then the region
  std::size_t region_begin_ = 0;
  std::uint32_t unsettled_ = 0;  // released bundles
  std::size_t released_ = 0;     // the links before have released their bundles
  index_heap<double> shares_;
  std::vector<bundle_id> taken_over_;
  std::vector<move> moved_;
};

}  // namespace attnsim
