// A time that no schedule can beat: for a problem of attention on devices of a cluster, whatever is sent where, in which
// order, in which pieces. It is provable against the simulator: it uses the same links, rates and speeds.
//
//   work      pairs that are visible x operations of a pair / (the kernel's highest rate at this head dimension x the sum of
//             the devices' speeds)
//   a cut     of all cuts (cuts.hpp): the least T in which both sides compute everything and what has to cross crosses.
//             B computes at most R_B T pairs, so A at least W - R_B T; for every price p of a pair
//             bytes >= p (W - R_B T) + least_crossing(p), bytes <= (in + out) T       (crossing.hpp)
//             T >= (p W + least_crossing(p)) / (in + out + p R_B)
//   all parts  of a division of the devices, such as all nodes, at once: their pairs are W together, so
//             T >= (p W + sum of least_crossing(p)) / sum of (in + out)
//   latency   under a full mask each result depends on the keys of every rank: the links' latencies from one rank to the one
//             furthest from it; under a causal one, on those of some: half of it
//
// Every rank is home to as many tokens of each sequence as any other (or to those that it is given, attention::shares) and
// starts and ends with them. Tensor-parallel ranks have their heads, data-parallel groups their sequences. Where queries are
// whole on all ranks, with windows, documents and padding, only work counts.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/schedule/strategy.hpp"

namespace attnsim {

struct time_limit {
  seconds time;
  std::string
      bound_by;  ///< "work", "latency", or the cut: "the links of node3 (nic to leaf)", with "and the others alike" of all parts
};

/// Of one pass, forward or backward, of a completed strategy's ranks on `devices`, as place() has them; of the strategy only
/// counts what is said above, its kernel and how its run starts. No infinite loop, no schedule: O(links x log devices).
time_limit limit_of(const cluster&, const attention&, const strategy&,
                    const std::vector<int>& devices, pass_kind);

/// The limits of many strategies of one problem on one cluster: what is the same for several is worked out once. For several
/// threads.
class known_limits {
 public:
  /// The cluster is kept by reference.
  known_limits(const cluster& c, const attention& a) : cluster_(c), problem_(a) {}

  /// As limit_of. Of unequal shares none is kept.
  time_limit of(const strategy&, const std::vector<int>& devices, pass_kind);

 private:
  /// All that limit_of reads of a strategy and of its devices: whether its queries are whole, the kernel, how it starts and the
  /// tensor-parallel ranks; the device of the first rank, and those of all in ascending order.
  using key = std::tuple<bool, std::string, run_start, int, pass_kind, int, std::vector<int>>;

  const cluster& cluster_;
  attention problem_;
  std::mutex guard_;
  std::map<key, time_limit> known_;
};

}  // namespace attnsim
