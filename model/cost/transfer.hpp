// A schedule's communication as flows over a cluster's links. Operations of one pattern (the same shift, or collectives
// over the same axes) use the same routes, so there are few patterns, each with one flow a rank or a group.
//
//   send/recv        latency = transport latency + links' latencies          the message's bytes on the route
//   ring collective  latency = collective latency + (n-1) step latency + all hops' links but one's, and each rank's bytes sent
//                    on every hop: the ring moves at the pace of its slowest link
//   all-to-all       as many messages as pairs, moving alike: a link carries its number of pairs / (n-1) of the bytes
//                    that a rank sends
// Where senders do not wait for receivers (device.hpp, run_ahead) a collective is the messages that it consists of, for the simulator:
// a ring's n-1 rounds of a message to the next rank, an all-to-all's pairs, each with its part of the bytes. Among equals they take
// as long.
// A link carries bytes / efficiency, for what NCCL reaches of its bandwidth (device.hpp, transport_profile).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/cluster/link_use.hpp"
#include "model/cost/collective.hpp"
#include "model/cost/workload.hpp"

namespace attnsim {

struct flow_form {
  std::span<const link_use> uses;
  flow_latency latency;
  link_kind transport = link_kind::nvlink;
  double rate_limit = std::numeric_limits<double>::infinity();
  double share = 1;  ///< of a link, for that of an even flow (device.hpp, share_spread)
  double run_ahead =
      0;  ///< bytes that may be under way before their receiver has come; 0 for a group's
};

/// All flows of one pattern, numbered.
struct communication_pattern {
  struct flow {
    std::size_t first_use = 0, last_use = 0;
    flow_latency latency;
    link_kind transport = link_kind::nvlink;
    double rate_limit = 0;
    double share = 1;
    double run_ahead = 0;
  };

  std::vector<int> sent, received;  ///< by rank: its flow, or -1
  std::vector<std::vector<int>> members;
  std::vector<flow> flows;
  std::vector<link_use> uses;
  std::vector<double> loads;  ///< by link: the sum of the weights of all flows
  int channels = 0;
  link_kind transport = link_kind::nvlink;
};

/// The messages of a collective. In each of the rounds every rank sends and receives one of each pattern.
struct collective_messages {
  std::vector<std::shared_ptr<const communication_pattern>> at_once;
  int rounds = 0;
};

/// Ranks on devices of a cluster, and the patterns of communication between them. A pattern is worked out when first asked
/// for, then kept: one object serves all schedules that place their ranks alike. Not for several threads at once.
class placed_ranks {
 public:
  /// The cluster is kept by reference. `devices`: by rank (placement.hpp).
  placed_ranks(const cluster& c, std::vector<int> devices)
      : cluster_(c), devices_(std::move(devices)) {}

  const cluster& on() const { return cluster_; }
  const std::vector<int>& devices() const { return devices_; }

  std::shared_ptr<const communication_pattern> pattern(const schedule&, const operation&) const;
  /// None where all members wait for each other.
  const collective_messages& messages(const schedule&, const operation&) const;

 private:
  /// The grid's extents, and of the operation what decides who talks to whom, and how.
  using key = std::tuple<std::vector<int>, op_kind, axis_set, int>;

  const cluster& cluster_;
  std::vector<int> devices_;
  mutable std::map<key, std::shared_ptr<const communication_pattern>> known_;
  mutable std::map<key, collective_messages> known_messages_;
};

class transfers {
 public:
  transfers(const schedule&, const placed_ranks&);

  int patterns() const { return static_cast<int>(patterns_.size()); }
  int pattern_of(std::size_t op) const { return pattern_of_op_[op]; }  ///< -1: local
  /// What the simulator runs for a pattern of operations: so many from `first`, at once, and that in rounds; itself, or a
  /// collective's messages.
  struct parts {
    int first = 0, count = 1, rounds = 1;
  };
  parts parts_of(int pattern) const { return parts_[static_cast<std::size_t>(pattern)]; }

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
  /// What all flows of the pattern at once ask of a link.
  double load(int pattern, link_id link) const { return at(pattern).loads[link]; }
  /// Multiprocessors that the pattern's kernel occupies on a device.
  int channels(int pattern) const { return at(pattern).channels; }
  /// Some of its senders need not wait for their receivers.
  bool runs_ahead(int pattern) const;
  /// The slowest transport that the pattern uses.
  link_kind transport(int pattern) const { return at(pattern).transport; }

 private:
  void add(std::shared_ptr<const communication_pattern>);
  const communication_pattern& at(int i) const { return *patterns_[static_cast<std::size_t>(i)]; }

  std::vector<int> pattern_of_op_;
  std::vector<std::shared_ptr<const communication_pattern>> patterns_;
  std::vector<parts> parts_;  ///< by pattern
};

/// How many times as long an operation's messages take as one message of all their bytes (message_share); 1 for ring
/// collectives.
double stretch(const workload&, const operation&, const transport_profile&);

}  // namespace attnsim
