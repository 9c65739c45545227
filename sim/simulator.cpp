#include "sim/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "model/cost/analytic.hpp"
#include "model/cost/host_time.hpp"
#include "model/error.hpp"
#include "sim/kernel_run.hpp"
#include "sim/stream_programs.hpp"
#include "sim/symmetry.hpp"
#include "sim/traffic.hpp"

namespace attnsim {
namespace {

/// A stream of a rank class. What it waits for while busy is an event of its own, or its flows.
struct stream_state {
  std::uint32_t completed = 0;  ///< operations done
  std::uint16_t flows_pending = 0;
  bool busy = false;
  bool awaits_launch = false;
  picoseconds started = 0;
};

using launch_list = std::vector<picoseconds>;

/// When the host has launched each operation of a run that starts idle; else empty.
launch_list idle_launches(const placed_schedule& i) {
  const auto start = i.chosen().start;
  launch_list times;
  if (start == run_start::in_sequence) return times;
  const auto& launch = i.on().device.idle_start;
  const bool graph = start == run_start::idle_graph;
  seconds now = graph ? launch.graph_launch : seconds();
  for (const auto& op : i.program().program) {
    if (!graph) now += is_communication(op.kind) ? launch.launch_communication : launch.launch;
    times.push_back(to_picoseconds(now.value()));
  }
  return times;
}

/// By rank class; of a framework's host, unless the run starts idle.
std::vector<launch_list> launches_of(const placed_schedule& i, const symmetry& s,
                                     const simulation_options& options) {
  std::vector<launch_list> all(s.rank_of_class.size(), idle_launches(i));
  if (!options.launches || i.chosen().start != run_start::in_sequence) return all;
  for (std::size_t r = 0; r < all.size(); ++r) {
    for (const auto time : launch_times(i, s.rank_of_class[r]))
      all[r].push_back(to_picoseconds(time.value()));
  }
  return all;
}

/// A framework's host that waits: what it launches after communication that it waits for is launched later by as long.
struct waiting_host {
  std::size_t wait = 0;  ///< of those in the program, the first that is not over
  picoseconds late = 0;  ///< than if it had launched ahead
};

/// The operations at whose end the host of a framework goes on.
std::vector<std::uint32_t> waits_of(const placed_schedule& i) {
  std::vector<std::uint32_t> waits;
  for (std::uint32_t op = 0; op < i.program().program.size(); ++op) {
    if (i.chosen().waits(i.program().program[op].kind)) waits.push_back(op);
  }
  return waits;
}

struct rank_state {
  kernel_run kernel;
  waiting_host host;
  std::array<int, 3> communicating{};  ///< communication that holds multiprocessors, by transport
  picoseconds compute = 0;
  picoseconds end = 0;
  double bytes_sent = 0;
  std::vector<interval> intervals;
};

class simulation {
 public:
  simulation(const placed_schedule& i, const simulation_options& options)
      : placed_(i),
        options_(options),
        symmetry_(find_symmetry(i, options.merge_symmetric)),
        programs_(i),
        traffic_(i, symmetry_, programs_, options.record_links),
        ranks_(symmetry_.rank_of_class.size()),
        streams_(ranks_.size() * programs_.streams.size()),
        launched_(launches_of(i, symmetry_, options)),
        waits_(launched_.front().empty() ? std::vector<std::uint32_t>() : waits_of(i)) {
    events_.resize(streams_.size());
  }

  timeline run() {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) touched_.push_back(r);
    start_ready();
    while (true) {
      const auto next = std::min(events_.empty() ? never : events_.top_key(), traffic_.next());
      if (next == never) break;
      now_ = next;
      tell_progress();
      complete_flows();
      while (!events_.empty() && events_.top_key() == now_) end_wait(events_.top());
      start_ready();
    }
    require_in_range();
    require_finished();
    return result();
  }

 private:
  std::size_t streams_of_rank() const { return programs_.streams.size(); }
  std::uint32_t event_of(std::uint32_t r, std::uint32_t stream) const {
    return r * static_cast<std::uint32_t>(streams_of_rank()) + stream;
  }
  stream_state& stream_of(std::uint32_t r, std::uint32_t s) { return streams_[event_of(r, s)]; }
  const stream_state& stream_of(std::uint32_t r, std::uint32_t s) const {
    return streams_[event_of(r, s)];
  }
  const stream_operation& current(std::uint32_t r, std::uint32_t s) const {
    return programs_.streams[s][stream_of(r, s).completed];
  }
  const lane& lane_of(const stream_operation& op) const {
    return programs_.lanes[static_cast<std::size_t>(op.lane)];
  }
  int rank_of(std::uint32_t r) const { return symmetry_.rank_of_class[r]; }

  // --- Starting ---------------------------------------------------------------------------------

  /// Starts what can start, until nothing of zero duration is left.
  void start_ready() {
    while (!touched_.empty()) {
      if (touched_.size() > 1) {
        std::sort(touched_.begin(), touched_.end());
        touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
      }
      ready_.swap(touched_);
      touched_.clear();
      for (const auto r : ready_) start_ready(r);
      if (traffic_.next() == now_) complete_flows();
    }
  }

  /// In launch order: of two operations that become ready together the first launched gets the
  /// device first.
  void start_ready(std::uint32_t r) {
    while (true) {
      const stream_operation* first = nullptr;
      std::uint32_t stream = 0;
      for (std::uint32_t s = 0; s < streams_of_rank(); ++s) {
        const auto* candidate = next_ready(r, s);
        if (candidate && (!first || candidate->operation < first->operation)) {
          first = candidate;
          stream = s;
        }
      }
      if (!first) return;
      start(r, stream, *first);
    }
  }

  const stream_operation* next_ready(std::uint32_t r, std::uint32_t s) const {
    const auto& state = stream_of(r, s);
    const auto& program = programs_.streams[s];
    if (state.busy || state.completed == program.size()) return nullptr;
    const auto& op = program[state.completed];
    if (waits_before(r, op)) return nullptr;
    for (std::uint32_t other = 0; other < streams_of_rank(); ++other) {
      if (stream_of(r, other).completed < op.needs[other]) return nullptr;
    }
    return &op;
  }

  /// The host has not come to it, and waits for something before it.
  bool waits_before(std::uint32_t r, const stream_operation& op) const {
    const auto wait = ranks_[r].host.wait;
    return wait < waits_.size() && waits_[wait] < op.operation;
  }

  picoseconds launch_of(std::uint32_t r, const stream_operation& op) const {
    return launched_[r].empty() ? 0 : launched_[r][op.operation] + ranks_[r].host.late;
  }

  void start(std::uint32_t r, std::uint32_t s, const stream_operation& op) {
    auto& state = stream_of(r, s);
    state.busy = true;
    state.awaits_launch = now_ < launch_of(r, op);
    if (state.awaits_launch) return events_.set(event_of(r, s), launch_of(r, op));
    state.started = now_;
    if (op.lane < 0) return start_local(r, s, op);
    // Of two that wait for the same the first launched starts first. In a run that starts idle both are launched by then, and
    // communication has the stream of higher priority (validate/executor).
    const auto& kernel = ranks_[r].kernel;
    const bool starts_idle = placed_.chosen().start != run_start::in_sequence;
    const bool goes_first = starts_idle || op.operation < kernel.operation();
    const auto room = lane_of(op).channels > 0 ? kernel.room(now_, goes_first) : now_;
    room == now_ ? begin_communication(r, s, op) : events_.set(event_of(r, s), room);
  }

  void start_local(std::uint32_t r, std::uint32_t s, const stream_operation& op) {
    const double time = placed_.local_time(op.operation, rank_of(r)).value();
    if (time == 0) return finish(r, s);
    if (!op.kernel) return events_.set(event_of(r, s), later(now_, to_picoseconds(time)));
    auto& kernel = ranks_[r].kernel;
    kernel.begin(now_, op.operation, time, placed_.costs().parts(op.operation, rank_of(r)),
                 slowdown(ranks_[r]));
    events_.set(event_of(r, s), kernel.end());
  }

  double slowdown(const rank_state& rank) const {
    double most = 1;
    for (const auto kind : {link_kind::nvlink, link_kind::pcie, link_kind::network}) {
      if (rank.communicating[static_cast<std::size_t>(kind)] > 0)
        most = std::max(most, placed_.on().device.slowdown(kind));
    }
    return most;
  }

  // --- Communication ----------------------------------------------------------------------------

  void begin_communication(std::uint32_t r, std::uint32_t s, const stream_operation& op) {
    if (lane_of(op).channels > 0) occupy_device(r, lane_of(op).transport, +1);
    const auto ends = traffic_.of(op.lane, r);
    const bool sends = ends.sent != traffic::no_flow;
    const bool receives = ends.received != traffic::no_flow;
    stream_of(r, s).flows_pending = static_cast<std::uint16_t>(sends + receives);
    if (sends) {
      traffic_.arrive(now_, ends.sent, op.bytes * op.stretch);
      ranks_[r].bytes_sent += op.bytes;
    }
    if (receives) traffic_.arrive(now_, ends.received, op.bytes * op.stretch);
    if (!sends && !receives) end_communication(r, s);
  }

  void complete_flows() {
    for (const auto tag : traffic_.advance(now_)) {
      const auto f = static_cast<traffic::flow_number>(tag);
      const auto s = traffic_.stream_of(f);
      for (const auto r : traffic_.members(f)) {
        if (--stream_of(r, s).flows_pending == 0) end_communication(r, s);
      }
    }
  }

  void end_communication(std::uint32_t r, std::uint32_t s) {
    const auto& l = lane_of(current(r, s));
    if (l.channels > 0) occupy_device(r, l.transport, -1);
    finish(r, s);
  }

  /// One communication operation more or less beside the kernel.
  void occupy_device(std::uint32_t r, link_kind transport, int change) {
    auto& rank = ranks_[r];
    rank.communicating[static_cast<std::size_t>(transport)] += change;
    if (rank.kernel.slow_down(now_, slowdown(rank))) {
      events_.set(event_of(r, compute_stream), rank.kernel.end());
    }
  }

  // --- Ending -----------------------------------------------------------------------------------

  /// A stream's event is due: its local operation ends, it is launched, or there is room for its communication.
  void end_wait(std::uint32_t event) {
    events_.erase(event);
    const auto s = event % static_cast<std::uint32_t>(streams_of_rank());
    const auto r = event / static_cast<std::uint32_t>(streams_of_rank());
    const auto& op = current(r, s);
    if (stream_of(r, s).awaits_launch) return start(r, s, op);
    if (op.lane >= 0) return begin_communication(r, s, op);
    if (op.kernel) ranks_[r].kernel.stop();
    finish(r, s);
  }

  void finish(std::uint32_t r, std::uint32_t s) {
    auto& rank = ranks_[r];
    auto& state = stream_of(r, s);
    if (const auto op = current(r, s).operation;
        rank.host.wait < waits_.size() && waits_[rank.host.wait] == op) {
      rank.host.late = std::max(rank.host.late, now_ - launched_[r][op]);
      ++rank.host.wait;
    }
    if (s == compute_stream) rank.compute += now_ - state.started;
    if (options_.record && now_ > state.started) {
      rank.intervals.push_back(
          {current(r, s).operation, seconds(to_seconds(state.started)), seconds(to_seconds(now_))});
    }
    rank.end = now_;
    state.busy = false;
    ++state.completed;
    ++done_;
    if (touched_.empty() || touched_.back() != r) touched_.push_back(r);
  }

  void tell_progress() {
    constexpr std::size_t often = 4096;
    if (!options_.progress || done_ < told_ + often) return;
    told_ = done_;
    options_.progress(done_, ranks_.size() * placed_.program().program.size());
  }

  // --- Results ----------------------------------------------------------------------------------

  /// What is still under way ends beyond the range of the clock.
  void require_in_range() const {
    if (events_.empty() && !traffic_.under_way()) return;
    throw input_error("simulated time", to_string(estimate(placed_).time),
                      fmt::format("expected at most {} (106 days), which picoseconds can count",
                                  to_string(seconds(to_seconds(never)))));
  }

  void require_finished() const {
    constexpr std::size_t enough = 400;
    std::string waiting;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      for (std::uint32_t s = 0; s < streams_of_rank() && waiting.size() < enough; ++s) {
        if (stream_of(r, s).completed < programs_.streams[s].size()) waiting += describe_wait(r, s);
      }
    }
    if (waiting.empty()) return;
    throw std::logic_error(fmt::format("{} cannot progress:{}", placed_.program().name, waiting));
  }

  std::string describe_wait(std::uint32_t r, std::uint32_t s) const {
    const auto& op = current(r, s);
    const auto kind = name_of(placed_.program().program[op.operation].kind);
    if (stream_of(r, s).busy) {
      return fmt::format(" rank {} waits in operation {} ({}) for its peers;", rank_of(r),
                         op.operation, kind);
    }
    std::string needs;
    for (std::uint32_t other = 0; other < streams_of_rank(); ++other) {
      if (stream_of(r, other).completed < op.needs[other]) {
        needs += fmt::format(" {} operations of stream {}", op.needs[other],
                             placed_.program().streams[other]);
      }
    }
    return fmt::format(" rank {} waits before operation {} ({}) for{};", rank_of(r), op.operation,
                       kind, needs);
  }

  timeline result() {
    timeline t;
    t.class_of = symmetry_.rank_class;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      auto& rank = ranks_[r];
      t.ranks.push_back({.rank = rank_of(r),
                         .end = seconds(to_seconds(rank.end)),
                         .compute = seconds(to_seconds(rank.compute)),
                         .intervals = std::move(rank.intervals),
                         .bytes_sent = rank.bytes_sent});
    }
    add_link_loads(t);
    return t;
  }

  void add_link_loads(timeline& t) {
    const double duration = t.duration().value();
    const auto bytes = traffic_.bytes_carried(now_);
    std::vector<link_id> classes(bytes.size());
    std::iota(classes.begin(), classes.end(), link_id{0});
    std::vector<double> utilisation;
    for (const auto l : classes) {
      const double possible = link_of(l).capacity.value() * duration;
      utilisation.push_back(possible > 0 ? bytes[l] / possible : 0);
    }
    std::stable_sort(classes.begin(), classes.end(),
                     [&](auto a, auto b) { return utilisation[a] > utilisation[b]; });
    std::vector<int> place(classes.size());
    for (const auto l : classes) {
      place[l] = static_cast<int>(t.links.size());
      t.links.push_back({.link = symmetry_.link_of_class[l],
                         .links = symmetry_.links_in_class[l],
                         .bytes = bytes[l],
                         .utilisation = utilisation[l],
                         .samples = load_over_time(l)});
    }
    for (const int l : symmetry_.link_class) {
      t.load_of.push_back(l < 0 ? -1 : place[static_cast<std::size_t>(l)]);
    }
  }

  const link& link_of(link_id link_class) const {
    return placed_.on().network.links()[symmetry_.link_of_class[link_class]];
  }

  std::vector<load_change> load_over_time(link_id link_class) {
    std::vector<load_change> changes;
    if (!options_.record_links) return changes;
    for (const auto& sample : traffic_.load(link_class)) {
      changes.push_back({seconds(to_seconds(sample.since)), sample.rate});
    }
    return changes;
  }

  static constexpr std::uint32_t compute_stream = 0;

  const placed_schedule& placed_;
  simulation_options options_;
  symmetry symmetry_;
  stream_programs programs_;
  traffic traffic_;
  std::vector<rank_state> ranks_;
  std::vector<stream_state> streams_;  ///< by rank class, stream
  std::vector<launch_list> launched_;  ///< by rank class, operation; empty: long before
  std::vector<std::uint32_t> waits_;   ///< operations, in the program's order
  index_heap<picoseconds> events_;     ///< by rank class, stream
  picoseconds now_ = 0;
  std::size_t done_ = 0, told_ = 0;  ///< operations
  std::vector<std::uint32_t> touched_, ready_;
};

}  // namespace

timeline simulate(const placed_schedule& i, const simulation_options& options) {
  return simulation(i, options).run();
}

}  // namespace attnsim
