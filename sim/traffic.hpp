// The flows of a simulation, from the arrival of their members to their last byte: a flow waits for
// all ranks that take part, then for its latency, then moves its bytes over the network. A message
// waits for its sender alone where the transport has room for it (connection.hpp).
//
// Most of a ring's traffic meets no other: where the links of a route carry nothing but its own
// flows, on any lane, they stay out of the network (private_route.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/cost/placed_schedule.hpp"
#include "sim/connection.hpp"
#include "sim/flow_network.hpp"
#include "sim/index_heap.hpp"
#include "sim/joined_links.hpp"
#include "sim/private_route.hpp"
#include "sim/stream_programs.hpp"
#include "sim/symmetry.hpp"

namespace attnsim {

class traffic {
 public:
  using flow_number = std::uint32_t;
  static constexpr flow_number no_flow = static_cast<flow_number>(-1);

  /// The flows that a rank class takes part in on a lane.
  struct ends {
    flow_number sent = no_flow;
    flow_number received = no_flow;  ///< no_flow also where it is the one sent
  };

  /// References are kept. `record`: keep the load of every class of links over time.
  traffic(const placed_schedule&, const symmetry&, const stream_programs&, bool record);

  ends of(int lane, std::uint32_t rank_class) const {
    return ends_[static_cast<std::size_t>(lane) * rank_classes_ + rank_class];
  }
  std::uint32_t stream_of(flow_number f) const { return flows_[f].stream; }
  /// Of a flow that advance() has ended, the rank classes that wait for it.
  std::span<const std::uint32_t> waiting(flow_number f) const {
    return std::span(members_).subspan(flows_[f].first_member, flows_[f].waiting);
  }

  struct message {
    double bytes = 0;
    std::optional<double>
        latency_of;  ///< what passes before it; of none that follows another of its operation
  };
  /// A member is ready to move it; the flow starts with the last of them, or with its sender. False where nothing is left to wait for.
  bool arrive(picoseconds now, flow_number, std::uint32_t rank_class, const message&);

  /// When something happens next on the network; `never` if nothing is under way.
  picoseconds next();
  /// A flow has started and not ended; with next() == `never` it will not within the clock's range.
  bool under_way() const { return !events_.empty() || network_.flows() > 0; }
  /// What happens at `now`, which is next(): the flows that end.
  const std::vector<flow_tag>& advance(picoseconds now);

  /// Bytes that one link of each class has carried until `now`.
  std::vector<double> bytes_carried(picoseconds now);
  std::span<const load_sample> load(link_id link_class) {
    return network_.recorded(links_.number_of[link_class]);
  }

 private:
  static constexpr std::uint32_t no_connection = static_cast<std::uint32_t>(-1);

  struct flow {
    std::uint32_t route = 0;
    std::uint32_t stream = 0;
    std::uint32_t first_member = 0;
    std::uint32_t members = 0;
    std::uint32_t missing = 0;  // members that have not arrived
    std::uint32_t waiting = 0;  // members that wait for its end: the first ones
    std::uint32_t connection = no_connection;
    flow_latency latency;
    double share = 1;  ///< what it moves and its limit are counted as an even flow's
    double rate_limit = unlimited;
    double bytes = 0;
  };
  /// The links of a class of flows. Lanes of one pattern share it.
  struct route {
    path_id path;
    int flows = 0;
    bool is_private = false;
    private_route alone;
  };

  void add_routes(const std::vector<bool>& used_patterns);
  void add_lane(const lane&);
  void add_flow(const lane&, std::size_t flow_class);
  void find_private_routes();
  void begin(picoseconds time, flow_number);
  void begin_part(picoseconds now, flow_number);
  bool goes_on(picoseconds now, flow_number);
  void start(picoseconds now, flow_number);
  void complete(picoseconds now, std::uint32_t route_number);
  std::uint32_t event_of(std::uint32_t route_number) const {
    return static_cast<std::uint32_t>(flows_.size()) + route_number;
  }

  const placed_schedule& placed_;
  const symmetry& symmetry_;
  std::size_t rank_classes_;
  joined_links links_;  // of the classes of links
  flow_network network_;
  std::vector<route> routes_;
  std::vector<std::uint32_t> first_route_;  // by pattern, of those with messages
  std::vector<flow> flows_;
  std::vector<std::uint32_t> members_;  // ascending, or sender and receiver
  std::vector<connection> connections_;
  std::vector<ends> ends_;  // by lane, rank class
  // Ends of latencies by flow, completions by private route. What happens at one time has an order: flows start, then end.
  index_heap<std::pair<picoseconds, bool>> events_;
  std::vector<flow_tag> done_;
};

}  // namespace attnsim
