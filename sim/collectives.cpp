#include "sim/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "model/cluster/rings.hpp"
#include "model/cluster/trees.hpp"
#include "sim/flow_network.hpp"
#include "sim/index_heap.hpp"

namespace attnsim {
namespace {

using message_number = std::uint32_t;

/// Writes messages stage by stage.
class expansion {
 public:
  explicit expansion(const cluster& c) : cluster_(c) {}

  void add_ring(std::vector<int> devices, int steps, double bytes_of_step) {
    std::sort(devices.begin(), devices.end());
    const auto channels = ring_channels(cluster_.network, devices);
    const auto& transport = transport_of_rings(channels);
    for (const auto& ring : channels) {
      add_channel(ring, steps, bytes_of_step / static_cast<double>(channels.size()), transport);
    }
  }

  void add_pairs(const std::vector<int>& devices, double bytes) {
    const auto& transport = cluster_.device.transport(pairs_flow(cluster_, devices, 0).transport);
    for (const int from : devices) {
      for (const int to : devices) {
        if (from == to) continue;
        add({from, to, bytes, transport.latency, transport.efficiency, begin(from, to),
             transport.crowded(devices.size())});
      }
    }
  }

  void add_tree(const std::vector<int>& devices, double bytes, int pieces) {
    const auto kind = tree_flow(cluster_, devices, 0).transport;
    const auto channels = tree_channels(cluster_.network, devices);
    for (const auto& tree : channels) {
      const double piece = bytes / pieces / static_cast<double>(channels.size());
      add_tree_channel(tree, piece, pieces, cluster_.device.transport(kind));
    }
  }

  /// What was added so far comes before what is added from here on, device by device.
  void next_stage() {
    for (auto& [device, messages] : stage_) before_[device] = std::move(messages);
    stage_.clear();
  }

  std::vector<message> take() { return std::move(messages_); }

 private:
  message_number add(message m) {
    const auto number = static_cast<message_number>(messages_.size());
    stage_[m.from].push_back(number);
    stage_[m.to].push_back(number);
    messages_.push_back(std::move(m));
    return number;
  }

  /// What both ends of a stage's first messages wait for.
  std::vector<message_number> begin(int from, int to) const {
    std::vector<message_number> after;
    for (const int end : {from, to}) {
      const auto found = before_.find(end);
      if (found != before_.end()) {
        after.insert(after.end(), found->second.begin(), found->second.end());
      }
    }
    return after;
  }

  const transport_profile& transport_of_rings(const std::vector<std::vector<int>>& rings) const {
    auto kind = link_kind::nvlink;
    for (auto ring : rings) {
      ring.push_back(ring.front());
      kind = std::max(kind, transport_between(cluster_, ring));
    }
    return cluster_.device.transport(kind);
  }

  void add_channel(const std::vector<int>& ring, int steps, double bytes,
                   const transport_profile& of_many) {
    constexpr int buffers =
        2;  // NCCL has eight; more share a link here where there they wait in line
    const auto n = ring.size();
    const auto& t = of_many.among(n);
    const auto first = static_cast<message_number>(messages_.size());
    for (int step = 0; step < steps; ++step) {
      for (std::size_t i = 0; i < n; ++i) {
        message m{ring[i], ring[(i + 1) % n], bytes, t.step_latency, t.collective_efficiency, {}};
        if (step == 0) {
          m.latency += t.collective_latency;
          m.after = begin(m.from, m.to);
        } else {
          const auto sent = [&](int earlier, std::size_t by) {
            return first + static_cast<message_number>((step - earlier) * static_cast<int>(n)) +
                   static_cast<message_number>(by);
          };
          m.after = {sent(1, (i + n - 1) % n)};
          if (step >= buffers) m.after.push_back(sent(buffers, i));
        }
        add(std::move(m));
      }
    }
  }

  void add_tree_channel(const device_tree& tree, double bytes, int pieces,
                        const transport_profile& t) {
    std::map<int, message_number> sent_up, sent_down;  // the last piece, by child
    for (int piece = 0; piece < pieces; ++piece) {
      const auto start = piece == 0 ? t.collective_latency : seconds();
      std::map<int, std::vector<message_number>> arrived;  // from the children, by parent
      for (auto edge = tree.edges.rbegin(); edge != tree.edges.rend(); ++edge) {
        const auto [child, parent] = *edge;
        auto after = arrived[child];
        if (after.empty()) after = begin(child, parent);
        if (piece > 0) after.push_back(sent_up[child]);
        const auto latency = t.step_latency + (arrived[child].empty() ? start : seconds());
        sent_up[child] = add({child, parent, bytes, latency, t.collective_efficiency, after});
        arrived[parent].push_back(sent_up[child]);
      }
      std::map<int, message_number> received;  // from the parent
      for (const auto& [child, parent] : tree.edges) {
        const auto from_above = received.find(parent);
        auto after =
            from_above == received.end() ? arrived[parent] : std::vector{from_above->second};
        if (piece > 0) after.push_back(sent_down[child]);
        sent_down[child] =
            add({parent, child, bytes, t.step_latency, t.collective_efficiency, after});
        received[child] = sent_down[child];
      }
    }
  }

  const cluster& cluster_;
  std::vector<message> messages_;
  std::map<int, std::vector<message_number>> stage_, before_;  // by device
};

void expand_hierarchical(expansion& e, collective_kind kind, const node_groups& groups,
                         double bytes) {
  const auto g = static_cast<int>(groups.rails.size()), m = static_cast<int>(groups.nodes.size());
  const auto within = [&](double step) {
    for (const auto& node : groups.nodes) e.add_ring(node, g - 1, step);
    e.next_stage();
  };
  const auto along = [&](int rounds, double step) {
    for (const auto& rail : groups.rails) e.add_ring(rail, rounds * (m - 1), step);
    e.next_stage();
  };
  switch (kind) {
    case collective_kind::all_gather:
      along(1, bytes / g / m);
      within(bytes / g);
      break;
    case collective_kind::reduce_scatter:
      within(bytes / g);
      along(1, bytes / g / m);
      break;
    case collective_kind::all_reduce:
      within(bytes / g);
      along(2, bytes / g / m);
      within(bytes / g);
      break;
    case collective_kind::all_to_all:
      for (const auto& node : groups.nodes) e.add_pairs(node, bytes / g);
      e.next_stage();
      for (const auto& rail : groups.rails) e.add_pairs(rail, bytes / m);
      break;
  }
}

/// The messages on their way.
class delivery {
 public:
  delivery(const cluster& c, const std::vector<message>& messages)
      : messages_(messages),
        network_(capacities(c)),
        missing_(messages.size()),
        followers_(messages.size()),
        arrivals_(messages.size()) {
    latencies_.resize(messages.size());
    for (message_number i = 0; i < messages.size(); ++i) {
      add_path(c, messages[i]);
      missing_[i] = messages[i].after.size();
      for (const auto before : messages[i].after) followers_[before].push_back(i);
    }
  }

  std::vector<seconds> run() {
    for (message_number i = 0; i < messages_.size(); ++i) {
      if (missing_[i] == 0) send(i);
    }
    std::size_t arrived = 0;
    std::vector<flow_tag> done;
    while (true) {
      const auto ready = latencies_.empty() ? never : latencies_.top_key();
      now_ = std::min(ready, network_.next_completion());
      if (now_ == never) break;
      done.clear();
      if (network_.next_completion() == now_) network_.complete(now_, done);
      while (!latencies_.empty() && latencies_.top_key() == now_) {
        const auto i = latencies_.top();
        latencies_.erase(i);
        network_.start(now_, i, paths_[i], messages_[i].bytes);
      }
      for (const auto tag : done) arrive(static_cast<message_number>(tag));
      arrived += done.size();
    }
    if (arrived < messages_.size()) report_deadlock();
    return arrivals_;
  }

 private:
  static std::vector<double> capacities(const cluster& c) {
    std::vector<double> result;
    for (const auto& l : c.network.links()) result.push_back(l.capacity.value());
    return result;
  }

  void add_path(const cluster& c, const message& m) {
    std::vector<link_id> route;
    c.network.route(m.from, m.to, route);
    std::vector<link_use> uses;
    seconds latency = m.latency;
    for (const auto id : route) {
      const double crowded = is_device_pcie(c.network, id) ? m.crowded : 1;
      uses.push_back({id, crowded / m.efficiency});
      latency += c.network.links()[id].latency;
    }
    paths_.push_back(network_.add_path(uses));
    latency_of_.push_back(to_picoseconds(latency.value()));
  }

  void send(message_number i) { latencies_.set(i, later(now_, latency_of_[i])); }

  void arrive(message_number i) {
    arrivals_[i] = seconds(to_seconds(now_));
    for (const auto follower : followers_[i]) {
      if (--missing_[follower] == 0) send(follower);
    }
  }

  [[noreturn]] void report_deadlock() const {
    const auto stuck = std::find_if(missing_.begin(), missing_.end(), [](auto m) { return m > 0; });
    const auto& m = messages_[static_cast<std::size_t>(stuck - missing_.begin())];
    throw std::logic_error(
        fmt::format("message {} from device {} to {} waits for messages that never arrive: {}",
                    stuck - missing_.begin(), m.from, m.to, fmt::join(m.after, ", ")));
  }

  const std::vector<message>& messages_;
  flow_network network_;
  std::vector<path_id> paths_;
  std::vector<picoseconds> latency_of_;
  std::vector<std::size_t> missing_;
  std::vector<std::vector<message_number>> followers_;
  std::vector<seconds> arrivals_;
  index_heap<picoseconds> latencies_;
  picoseconds now_ = 0;
};

}  // namespace

std::vector<message> expand(const cluster& c, const collective& what,
                            const std::vector<int>& devices, double bytes, int pieces) {
  const int n = static_cast<int>(devices.size());
  if (stages(c, what, devices, bytes).empty()) return {};
  expansion e(c);
  switch (what.algorithm) {
    case collective_algorithm::ring:
      e.add_ring(devices, (what.kind == collective_kind::all_reduce ? 2 : 1) * (n - 1), bytes / n);
      break;
    case collective_algorithm::tree:
      e.add_tree(devices, bytes, pieces);
      break;
    case collective_algorithm::pairs:
      e.add_pairs(devices, bytes / n);
      break;
    case collective_algorithm::hierarchical:
      expand_hierarchical(e, what.kind, groups_of(c.network, devices), bytes);
      break;
  }
  return e.take();
}

std::vector<seconds> arrivals(const cluster& c, const std::vector<message>& messages) {
  return delivery(c, messages).run();
}

seconds duration(const cluster& c, const std::vector<message>& messages) {
  const auto all = arrivals(c, messages);
  return all.empty() ? seconds() : *std::max_element(all.begin(), all.end());
}

}  // namespace attnsim
