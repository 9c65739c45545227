// A route whose links no other route shares: its flows have them to themselves and divide them
// equally, whatever happens elsewhere. The network's answer for this case (flow_network.hpp), for a
// handful of flows at a fraction of the cost.
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <vector>

#include "sim/clock.hpp"
#include "sim/flow_network.hpp"

namespace attnsim {

class private_route {
 public:
  /// `rate`: of all flows together, in bytes/s.
  explicit private_route(double rate) : rate_(rate) {}
  /// No flow is faster, in bytes/s.
  void limit(double rate_each) { limit_ = rate_each; }

  /// Not before the last start or completion.
  void start(picoseconds now, flow_tag tag, double bytes);
  /// When the next flow completes if none is started before; `never` if there is none.
  picoseconds next_completion() const { return next_; }
  /// Ends the flows that complete at `now`, which is next_completion(), in the order of their start.
  void complete(picoseconds now, std::vector<flow_tag>& done);

  /// By the flows that have ended, in bytes.
  double moved() const { return moved_; }

  /// The same route, all of it later.
  void delay(picoseconds by) {
    since_ += by;
    if (next_ != never) next_ += by;
  }
  /// Whether its flows are those of the other so much later.
  bool follows(const private_route& other, picoseconds by) const {
    return flows_ == other.flows_ && (flows_.empty() || since_ == other.since_ + by);
  }

 private:
  struct flow {
    flow_tag tag;
    double bytes;
    double left;

    friend bool operator==(const flow&, const flow&) = default;
  };

  double rate_each() const { return std::min(limit_, rate_ / static_cast<double>(flows_.size())); }
  void advance(picoseconds now);
  void find_next();
  picoseconds end(const flow& f) const;

  double rate_;
  double limit_ = unlimited;
  double moved_ = 0;
  boost::container::small_vector<flow, 2> flows_;
  picoseconds since_ = 0;  // `left` is of this time
  picoseconds next_ = never;
};

}  // namespace attnsim
