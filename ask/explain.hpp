// What explains a plan: what each candidate lacks to be first, from where on it computes nearly all the time, what the
// other launch order would cost, which frameworks can run it, what was rejected and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ask/planner.hpp"
#include "ask/question.hpp"

namespace attnsim::ask {

/// How far a candidate is from another, better one, and what would have to be faster to close the gap.
struct shortfall {
  seconds behind;
  double network =
      0;  ///< factor by which exposed communication would have to shrink; 0: none would do
  double kernels = 0;  ///< factor by which computation would have to shrink; 0: none would do
};
shortfall to_catch_up(const prediction& candidate, const prediction& best);

/// A cluster at any value of one key that is a bandwidth, such as nics.bandwidth. The file is read twice, at 1 and 2 GB/s:
/// the rates of links are linear in it.
class cluster_by_bandwidth {
 public:
  /// Throws as cluster_of, also where the file has no such key.
  cluster_by_bandwidth(const question&, const std::string& key);

  cluster at(bandwidth) const;

 private:
  cluster base_;
  struct share {
    link_id link;
    double more;  ///< by so many times its rate for each GB/s above the first
  };
  std::vector<share> links_;
};

// Where a strategy becomes compute-bound: what is not computing is at most `share` of its time, all passes together, by
// the closed form.

/// The shortest sequence from which it is, doubling or halving the problem's up to 2^10 times.
std::optional<std::int64_t> compute_bound_from(const cluster&, const prediction&,
                                               double share = 0.05);

/// The lowest bandwidth above which it is, within 1 %, from 0.1 GB/s to 10 TB/s.
std::optional<bandwidth> compute_bound_above(const cluster_by_bandwidth&, const prediction&,
                                             double share = 0.05);

/// The candidate launched with kernels before the transfers that they are to hide.
prediction launched_late(const cluster&, const prediction&);

struct explained_candidate {
  shortfall lacks;
  std::optional<std::int64_t> tokens;  ///< compute-bound from
  std::optional<bandwidth>
      faster_network;  ///< compute-bound above; also none where the file has no such key
};

/// Rejections of one schedule for one reason.
struct rejected_alike {
  std::string schedule, reason;
  std::vector<strategy> candidates;
};

/// What a framework, or one of its settings, can do with a plan's candidates.
struct usable_by {
  std::string_view name;
  std::optional<std::size_t> best;  ///< an index
  std::string refuses_first;        ///< why it cannot run the best of all; empty: it can
};

struct explanation {
  std::string bandwidth_key;
  std::vector<explained_candidate> candidates;
  prediction late;        ///< the best, launched late
  link_kind transport{};  ///< of its transfers between most ranks
  std::vector<usable_by> frameworks;
  std::vector<usable_by> comm_types;  ///< Megatron-LM's (ask/frameworks.hpp)
  std::vector<rejected_alike> rejected;
};

explanation explain(const question&, const cluster&, const plan_result&);

}  // namespace attnsim::ask
