// A flow_network next to the plain solver: the same flows, all rates solved anew after every event,
// and every difference reported. Used by the randomised test and by the fuzzer.
#pragma once

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/flow_network.hpp"
#include "sim/max_min.hpp"

namespace attnsim {

class checked_network {
 public:
  explicit checked_network(std::vector<double> capacities)
      : capacities_(capacities), carried_(capacities.size()), network_(std::move(capacities)) {}

  path_id add_path(std::vector<link_use> path) {
    paths_.push_back(merged_path(path, capacities_.size()));
    return network_.add_path(path);
  }

  std::size_t flows() const { return flows_.size(); }
  picoseconds now() const { return now_; }

  void start(path_id path, double bytes, double rate_limit = unlimited) {
    network_.start(now_, next_tag_, path, bytes, rate_limit);
    flow_demand demand{paths_[path], rate_limit};
    if (bytes == 0) demand = {};  // never on the links
    flows_.push_back({next_tag_++, path, demand, bytes});
  }

  /// Goes on by `wait`, or to the next completion if that is sooner, and completes what is due.
  void go(picoseconds wait = never) {
    compare_rates();
    const picoseconds next = network_.next_completion();
    if (wait == never && next == never) return;
    const picoseconds until = wait < next - now_ ? now_ + wait : next;
    move(until - now_);
    now_ = until;
    std::vector<flow_tag> done;
    network_.complete(now_, done);
    if (!std::ranges::is_sorted(done)) report("completions out of order");
    for (const flow_tag tag : done) retire(tag);
    for (const plain_flow& flow : flows_) {
      if (lateness(flow) > tolerance(flow)) report("flow ", flow.tag, " late by ", lateness(flow));
    }
    compare_bytes();
  }

  /// The first difference found; empty if none.
  const std::string& difference() const { return difference_; }

 private:
  struct plain_flow {
    flow_tag tag;
    path_id path;
    flow_demand demand;
    double bytes;
    double moved = 0;
    double rate = 0;
    double seconds = 0;
  };

  template <typename... Parts>
  void report(const Parts&... parts) {
    if (!difference_.empty()) return;
    std::ostringstream text;
    text.precision(17);
    text << "at " << now_ << " ps: ";
    (text << ... << parts);
    difference_ = text.str();
  }

  void compare_rates() {
    std::vector<flow_demand> demands;
    for (const plain_flow& flow : flows_) demands.push_back(flow.demand);
    const std::vector<double> rates = max_min_rates(capacities_, demands);
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      flows_[i].rate = rates[i];
      if (rates[i] == unlimited) continue;
      const double rate = network_.rate(flows_[i].path, flows_[i].demand.rate_limit);
      if (!(std::abs(rate - rates[i]) <= 1e-9 * rates[i])) {
        report("flow ", flows_[i].tag, " has rate ", rate, ", expected ", rates[i]);
      }
    }
  }

  void move(picoseconds time) {
    for (plain_flow& flow : flows_) {
      if (flow.rate == unlimited) continue;
      const double moved = flow.rate * to_seconds(time);
      flow.moved += moved;
      flow.seconds += to_seconds(time);
      for (const link_use& use : flow.demand.path) carried_[use.link] += use.weight * moved;
    }
  }

  /// Seconds since the flow should have completed, negative before.
  double lateness(const plain_flow& flow) const {
    return flow.rate == unlimited || flow.rate == 0 ? 0 : (flow.moved - flow.bytes) / flow.rate;
  }
  double tolerance(const plain_flow& flow) const { return 1e-12 + 1e-9 * flow.seconds; }

  void retire(flow_tag tag) {
    const auto flow = std::ranges::find(flows_, tag, &plain_flow::tag);
    if (flow == flows_.end()) return report("flow ", tag, " completed twice");
    if (lateness(*flow) < -tolerance(*flow)) report("flow ", tag, " early by ", -lateness(*flow));
    if (flow->rate < unlimited) {
      for (const link_use& use : flow->demand.path) {
        carried_[use.link] += use.weight * (flow->bytes - flow->moved);
      }
    }
    flows_.erase(flow);
  }

  void compare_bytes() {
    const std::vector<double> bytes = network_.bytes_carried(now_);
    for (std::size_t link = 0; link < bytes.size(); ++link) {
      const double slack = 1e-9 * carried_[link] + 1e-12 * capacities_[link];
      if (!(std::abs(bytes[link] - carried_[link]) <= slack)) {
        report("link ", link, " carried ", bytes[link], " B, expected ", carried_[link]);
      }
    }
  }

  std::vector<double> capacities_;
  std::vector<double> carried_;
  std::vector<std::vector<link_use>> paths_;
  std::vector<plain_flow> flows_;
  flow_network network_;
  picoseconds now_ = 0;
  flow_tag next_tag_ = 0;
  std::string difference_;
};

}  // namespace attnsim
