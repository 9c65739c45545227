// A schedule's communication as flows over a cluster's links. Operations of one pattern (the same shift, or collectives
// over the same axes) use the same routes, so there are few patterns, each with one flow a rank or a group.
//
//   send/recv        latency = transport latency + links' latencies          the message's bytes on the route
//   ring collective  latency = collective latency + (n-1)(step latency + slowest hop's links), and each rank's bytes sent
//                    on every hop: the ring moves at the pace of its slowest link
//   all-to-all       as many messages as pairs, moving alike: a link carries its number of pairs / (n-1) of the bytes
//                    that a rank sends
// A link carries bytes / efficiency, for what NCCL reaches of its bandwidth (device.hpp, transport_profile).
#pragma once

#include <span>
#include <vector>

#include "model/cluster.hpp"
#include "model/cost/collective.hpp"
#include "model/link_use.hpp"
#include "model/workload.hpp"

namespace attnsim {

struct flow_form {
  std::span<const link_use> uses;
  flow_latency latency;
  link_kind transport = link_kind::nvlink;
  double rate_limit = std::numeric_limits<double>::infinity();
};

class transfers {
 public:
  /// `devices`: by rank (placement.hpp).
  transfers(const schedule&, const cluster&, const std::vector<int>& devices);

  int patterns() const { return static_cast<int>(patterns_.size()); }
  int pattern_of(std::size_t op) const { return pattern_of_op_[op]; }  ///< -1: local

  /// Flows are numbered within their pattern. The flow that carries what `rank` sends (receives); -1: nothing moves.
  int sent(int pattern, int rank) const { return at(pattern).sent[static_cast<std::size_t>(rank)]; }
  int received(int pattern, int rank) const {
    return at(pattern).received[static_cast<std::size_t>(rank)];
  }
  int flows(int pattern) const { return static_cast<int>(at(pattern).members.size()); }
  /// The ranks that must have reached the operation before the flow starts; for send/recv sender, receiver.
  std::span<const int> members(int pattern, int flow) const {
    return at(pattern).members[static_cast<std::size_t>(flow)];
  }
  flow_form form(int pattern, int flow) const;
  /// Multiprocessors that the pattern's kernel occupies on a device.
  int channels(int pattern) const { return at(pattern).channels; }
  /// The slowest transport that the pattern uses.
  link_kind transport(int pattern) const { return at(pattern).transport; }

 private:
  struct flow_data {
    std::size_t first_use = 0, last_use = 0;
    flow_latency latency;
    link_kind transport = link_kind::nvlink;
    double rate_limit = 0;
  };
  struct pattern_data {
    std::vector<int> sent, received;
    std::vector<std::vector<int>> members;
    std::vector<flow_data> flows;
    int channels = 0;
    link_kind transport = link_kind::nvlink;
  };

  const pattern_data& at(int i) const { return patterns_[static_cast<std::size_t>(i)]; }
  pattern_data make_pattern(const schedule&, const operation&);
  void add_messages(pattern_data&, const schedule&, const operation&);
  void add_message(pattern_data&, int sender, int receiver, bool one_way);
  void add_group(pattern_data&, const std::vector<int>& group, const collective_flow&);
  void add_flow(pattern_data&, std::vector<int> members, const collective_flow&);
  std::vector<int> devices_of(const std::vector<int>& group) const;
  std::vector<link_id> route(int from_rank, int to_rank) const;
  seconds links_latency(std::span<const link_id>) const;

  const cluster& cluster_;
  std::vector<int> devices_;
  std::vector<int> pattern_of_op_;
  std::vector<pattern_data> patterns_;
  std::vector<link_use> uses_;
};

/// How many times as long an operation's messages take as one message of all their bytes (message_share); 1 for ring
/// collectives.
double stretch(const workload&, const operation&, const transport_profile&);

}  // namespace attnsim
