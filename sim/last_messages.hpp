// The end of a program in which ranks only pass messages on and merge what they get, as when partial outputs go round the rows of
// a grid: ranks x steps of them, most of all operations of a large grid. No kernel runs beside them, and where no link can be
// full with all of them at once each moves at the pace of its own slowest link. Then nothing depends on the order of what happens
// elsewhere, and each operation's time follows from those before it: they are worked out operation by operation for all classes
// of ranks at once, without an event. Where communication needs no multiprocessors, kernels belong to it as well, as nothing slows
// them down: then a whole ring may be such an end.
//
//   begin of a message = later of both ranks' arrivals + latency,   end = begin + bytes / rate
//
// It is found, never assumed: a link that could be full, a host that launches, a kernel that still runs or traffic that is not
// over when the first message starts leave the whole program to the event loop (simulator.hpp).
//
// Ranks that pass messages among each other only, such as a row of a grid, are done with all their operations before the next
// ones are begun: what a core works on stays in its cache. Each rank's operations and sums are the same in any order of those.
#pragma once

#include <optional>
#include <vector>

#include "sim/clock.hpp"
#include "sim/fair_shares.hpp"
#include "sim/stream_programs.hpp"
#include "sim/symmetry.hpp"
#include "sim/timeline.hpp"

namespace attnsim {

class last_messages {
 public:
  /// Nothing where a program ends otherwise, with few messages, or where one of their links could be full. References are kept.
  static std::optional<last_messages> find(const placed_schedule&, const symmetry&,
                                           const stream_programs&);

  /// What comes before.
  const stream_programs& before() const { return before_; }

  /// How far the classes of ranks have come with what is before.
  struct start {
    std::vector<std::vector<picoseconds>> ends;  ///< by stream, class: of its last operation
    picoseconds traffic = 0;                     ///< of the last flow
  };
  /// What a class has done until now (rank_run.hpp).
  struct done {
    picoseconds compute = 0;
    picoseconds end = 0;
    double bytes_sent = 0;
  };
  /// Does the rest and adds it to what the classes have done. False, with sums that mean nothing, where something before is not
  /// over in time.
  bool run(const start&, std::vector<done>&) const;

  /// Adds the intervals of one class in the order in which they begin in the program.
  void record(const start&, const std::vector<done>& before, std::size_t rank_class,
              std::vector<interval>&) const;

  /// What it carries over one link of each class, in bytes.
  std::vector<double> bytes_carried() const;

 private:
  /// For the end of a stream's latest operation, or of one so many back.
  struct wait {
    std::uint32_t stream, back;
  };
  struct step {
    std::uint32_t stream;
    stream_operation op;
    std::vector<wait> waits;  ///< also for the one before it on its stream
    bool first = false;       ///< of its stream
  };
  /// By class of flows: what moves its messages, and the classes of ranks at both ends.
  struct flow {
    flow_latency latency;
    double share = 1;
    double rate = unlimited;  ///< with the network to itself
    std::uint32_t sender = 0, receiver = 0;
  };
  struct lane_flows {
    int pattern = 0;
    std::vector<flow> flows;
    std::vector<int> sent, received;  ///< by class of ranks; -1: none
  };
  /// Classes of ranks whose messages stay among them, ascending.
  using part = std::vector<std::uint32_t>;
  class work;

  last_messages(const placed_schedule& i, const symmetry& s, const stream_programs& p)
      : placed_(i), symmetry_(s), before_(p) {}

  bool split(const stream_programs&);
  void add_lane(const lane&, lane_flows&) const;
  bool some_link_can_be_full() const;
  void find_parts();

  const placed_schedule& placed_;
  const symmetry& symmetry_;
  stream_programs before_;
  std::vector<step> steps_;        ///< in the program's order
  std::uint32_t kept_ = 1;         ///< latest operations of a stream that some step waits for
  std::vector<lane_flows> lanes_;  ///< by lane; empty where it has no step
  std::vector<part> parts_;
  std::vector<std::uint32_t> part_of_, place_;  ///< by class of ranks: its part, and which of it
};

}  // namespace attnsim
