// Flows in time on a network of links that they share max-min fairly: a fluid model. Starts and ends
// are instants; between them every flow moves bytes at its constant max-min rate (fair_shares.hpp).
//
// Use: take next_completion(), call complete() at that time, start what follows from it. Rates are
// solved once an instant, however many flows start and end in it; only an instant's completions
// should be taken before its starts.
//
// Time. Completions are rounded to the nearest picosecond, and flows whose times round to the same
// one are completed together, in the order they were started. An event's rounding moves later ones
// by at most 0.5 ps of service each; apart from that, times are exact to about 1e-12 relative to
// the flow's duration. A flow that would take longer than the clock's 106 days never completes.
//
// Work. Let V(link) be the integral over time of the link's level: the bytes that each flow it holds
// back has moved. A flow ends when V reaches a value known when it starts, so a change of level
// costs O(1) for all flows of a link: they wait in a heap ordered by that value. V restarts at 0
// after a second of service, so that its rounding stays far below a picosecond's worth of bytes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/clock.hpp"
#include "sim/fair_shares.hpp"
#include "sim/index_heap.hpp"
#include "sim/link_use.hpp"

namespace attnsim {

using path_id = std::uint32_t;
using flow_tag = std::uint64_t;

/// From `since` on, until the next sample, the link carries `rate` bytes/s.
struct load_sample {
  picoseconds since;
  double rate;
};

class flow_network {
 public:
  /// Links 0 .. capacities.size() - 1, in bytes/s. Throws std::invalid_argument unless all are
  /// positive and finite.
  explicit flow_network(std::vector<double> capacities);

  /// Registers a path for any number of flows. Throws std::invalid_argument for an unknown link or
  /// a bad weight.
  path_id add_path(std::span<const link_use> path);

  /// Starts a flow of `bytes` that arrives as `tag` from complete(). No bytes, or no links and no
  /// limit: it completes at `now`. The network remembers every distinct (path, limit). Throws
  /// std::invalid_argument for an unknown path, negative or infinite bytes, a limit that is not
  /// positive, and a `now` in the past or after next_completion().
  void start(picoseconds now, flow_tag tag, path_id path, double bytes,
             double rate_limit = unlimited);

  /// When the next flow completes if none is started before; `never` if there is none.
  picoseconds next_completion();

  /// Ends all flows that complete at `now` and appends their tags to `done` in the order they were
  /// started. Throws std::invalid_argument for a `now` in the past or after next_completion().
  void complete(picoseconds now, std::vector<flow_tag>& done);

  /// The present rate in bytes/s of each flow started with this path and limit; 0 if there is none.
  double rate(path_id path, double rate_limit = unlimited);

  /// What every link has carried until `now`, in bytes. O(all paths).
  std::vector<double> bytes_carried(picoseconds now);

  /// Records the link's load over time from now on.
  void record(link_id link);
  std::span<const load_sample> recorded(link_id link);

  std::size_t flows() const { return flows_; }

 private:
  struct flow {
    double end;  // in the bundle's count of bytes per flow
    double bytes;
    std::uint64_t sequence;
    flow_tag tag;

    /// For heaps with the first to end at the front.
    friend bool operator<(const flow& a, const flow& b) {
      return a.end != b.end ? a.end > b.end : a.sequence > b.sequence;
    }
  };
  struct bundle_state {
    std::vector<flow> flows;  // heap
    double origin = 0;        // bytes moved per flow = V(owner) - origin
    double completed = 0;     // bytes of the flows that have ended
    std::uint32_t version = 0;
    bool restless = false;
  };
  struct waiting {  // the first flow of a bundle
    double end;     // in V of the link
    bundle_id bundle;
    std::uint32_t version;  // outdated unless the bundle's

    friend bool operator<(const waiting& a, const waiting& b) {
      return a.end != b.end ? a.end > b.end : a.bundle > b.bundle;
    }
  };
  struct link_state {
    double served = 0;  // V at `since`
    picoseconds since = 0;
    std::vector<waiting> queue;  // heap
    bool is_recorded = false;
  };
  struct finished {
    std::uint64_t sequence;
    flow_tag tag;
  };

  bundle_id bundle_of(path_id path, double rate_limit);
  void recount(bundle_id id);
  void advance(picoseconds now);
  void solve();
  void catch_up(const fair_shares::change& change);
  void enqueue_first(bundle_id id);
  void schedule(link_id id);
  void restart_count(link_id id);
  void note_load(link_id link);
  void complete_on(link_id link, picoseconds now);
  void complete_first(bundle_id id);
  void disturb(bundle_id id);
  void mark_restless(bundle_id id);

  double rate_of(bundle_id id) const;
  double moved_each(bundle_id id) const;
  picoseconds time_of(link_id id, double end) const;
  bool outdated(const waiting& w) const { return bundles_[w.bundle].version != w.version; }

  fair_shares shares_;
  std::size_t public_links_;
  std::vector<link_state> links_;
  std::vector<bundle_state> bundles_;
  std::vector<bundle_id> paths_;  // their bundle of unlimited flows
  std::map<std::pair<path_id, double>, bundle_id> limited_;
  std::vector<std::vector<load_sample>> records_;

  picoseconds now_ = 0;
  std::uint64_t sequence_ = 0;
  std::size_t flows_ = 0;
  index_heap<picoseconds> completions_;  // of links
  std::vector<bundle_id> restless_;      // bundles whose first flow changed since the last solve
  std::vector<link_id> stale_;           // links whose next completion may have changed
  std::vector<finished> instant_;        // flows that complete as they start
  std::vector<finished> finished_;
};

}  // namespace attnsim
