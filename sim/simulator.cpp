#include "sim/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "sim/event_queue.hpp"
#include "sim/flow_network.hpp"
#include "sim/symmetry.hpp"

namespace attnsim {
namespace {

constexpr std::size_t most_streams = 8;

/// An operation, laid out for the event loop.
struct step {
  std::uint32_t operation = 0;
  int pattern = -1;
  int lane = -1;  ///< of communication: the (pattern, stream) it uses
  bool kernel = false;
  std::array<std::uint32_t, most_streams> needs{};
};

/// One stream of one rank class.
struct stream_state {
  std::uint32_t completed = 0;  ///< operations done
  bool busy = false;
  int flows_pending = 0;        ///< of the communication that runs
  picoseconds started = 0;
};

/// The attention kernel that runs on a rank class's device.
struct kernel_state {
  double remaining = 0;     ///< seconds at full speed
  double call = 0;          ///< seconds of one kernel call
  double slowdown = 1;
  picoseconds since = 0;    ///< `remaining` is of this time
  std::uint32_t version = 0;
  bool running = false;
};

struct rank_state {
  std::array<stream_state, most_streams> streams;
  kernel_state kernel;
  int communicating = 0;  ///< communication operations that hold multiprocessors
  picoseconds compute = 0;
  picoseconds end = 0;
  std::vector<interval> intervals;
};

/// One class of flows on one lane: one operation at a time.
struct flow_state {
  int pattern = 0;
  int flow_class = 0;
  std::uint32_t stream = 0;
  path_id path = 0;
  picoseconds latency = 0;
  std::uint32_t operation = 0;  ///< in progress
  int arrived = 0;
  std::vector<int> members;     ///< distinct rank classes
};

enum class event_kind : std::uint8_t { kernel_end, local_end, room, flow_start };

struct event {
  event_kind kind;
  std::uint32_t subject;  ///< rank class or flow
  std::uint32_t detail;   ///< stream, or version of the kernel's end
};

class simulation {
 public:
  simulation(const instance& i, const simulation_options& options)
      : instance_(i), options_(options), symmetry_(find_symmetry(i, options.merge_symmetric)),
        streams_(i.program().streams.size()), steps_(streams_), ranks_(symmetry_.rank_of_class.size()),
        network_(class_capacities()) {
    if (streams_ > most_streams) throw std::logic_error("a schedule has at most 8 streams");
    lay_out_program();
    lay_out_flows();
  }

  timeline run() {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) touch(r);
    start_ready();
    while (true) {
      const auto next = std::min(events_.next_time(), network_.next_completion());
      if (next == never) break;
      now_ = next;
      complete_flows();
      while (events_.next_time() == now_) handle(events_.pop());
      start_ready();
    }
    require_finished();
    return result();
  }

 private:
  // --- Set-up ------------------------------------------------------------------------------------------------------

  std::vector<double> class_capacities() const {
    std::vector<double> capacities;
    for (const auto id : symmetry_.link_of_class) {
      capacities.push_back(instance_.on().network.links()[id].capacity.value());
    }
    return capacities;
  }

  void lay_out_program() {
    const auto& program = instance_.program().program;
    for (std::size_t op = 0; op < program.size(); ++op) {
      step s{.operation = static_cast<std::uint32_t>(op),
             .pattern = instance_.communication().pattern_of(op),
             .kernel = is_kernel(program[op].kind)};
      std::copy(program[op].needs.begin(), program[op].needs.end(), s.needs.begin());
      if (s.pattern >= 0) s.lane = lane_of(s.pattern, program[op].stream);
      steps_[static_cast<std::size_t>(program[op].stream)].push_back(s);
    }
  }

  int lane_of(int pattern, int stream) {
    const std::pair key{pattern, stream};
    const auto found = std::find(lanes_.begin(), lanes_.end(), key);
    if (found == lanes_.end()) lanes_.push_back(key);
    return static_cast<int>(std::find(lanes_.begin(), lanes_.end(), key) - lanes_.begin());
  }

  void lay_out_flows() {
    const auto& communication = instance_.communication();
    for (const auto& [pattern, stream] : lanes_) {
      first_flow_of_lane_.push_back(flows_.size());
      const auto p = static_cast<std::size_t>(pattern);
      for (std::size_t c = 0; c < symmetry_.flow_of_class[p].size(); ++c) {
        const int flow = symmetry_.flow_of_class[p][c];
        flow_state f{.pattern = pattern,
                     .flow_class = static_cast<int>(c),
                     .stream = static_cast<std::uint32_t>(stream),
                     .path = network_.add_path(symmetry_.uses[p][c]),
                     .latency = to_picoseconds(communication.form(pattern, flow).latency.value())};
        for (const int member : communication.members(pattern, flow)) {
          const int r = symmetry_.rank_class[static_cast<std::size_t>(member)];
          if (std::find(f.members.begin(), f.members.end(), r) == f.members.end()) f.members.push_back(r);
        }
        flows_.push_back(std::move(f));
      }
    }
  }

  int rank_of(std::size_t r) const { return symmetry_.rank_of_class[r]; }

  /// The class flow that a rank class sends or receives on a lane; -1: none.
  std::ptrdiff_t flow_on(int lane, int flow) const {
    if (flow < 0) return -1;
    const auto p = static_cast<std::size_t>(lanes_[static_cast<std::size_t>(lane)].first);
    return static_cast<std::ptrdiff_t>(first_flow_of_lane_[static_cast<std::size_t>(lane)]) +
           symmetry_.flow_class[p][static_cast<std::size_t>(flow)];
  }

  // --- Starting ----------------------------------------------------------------------------------------------------

  void touch(std::uint32_t r) { touched_.push_back(r); }

  /// Starts what can start, until nothing of zero duration is left.
  void start_ready() {
    while (!touched_.empty()) {
      std::sort(touched_.begin(), touched_.end());
      touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
      ready_.swap(touched_);
      touched_.clear();
      for (const auto r : ready_) start_ready(r);
      complete_flows();
    }
  }

  /// In launch order, so that of two operations that become ready together the first launched gets the device first.
  void start_ready(std::uint32_t r) {
    while (true) {
      const step* first = nullptr;
      std::uint32_t stream = 0;
      for (std::uint32_t s = 0; s < streams_; ++s) {
        const auto* candidate = next_ready(ranks_[r], s);
        if (candidate && (!first || candidate->operation < first->operation)) first = candidate, stream = s;
      }
      if (!first) return;
      start(r, stream, *first);
    }
  }

  const step* next_ready(const rank_state& rank, std::uint32_t stream) const {
    const auto& state = rank.streams[stream];
    if (state.busy || state.completed >= steps_[stream].size()) return nullptr;
    const auto& s = steps_[stream][state.completed];
    for (std::size_t other = 0; other < streams_; ++other) {
      if (rank.streams[other].completed < s.needs[other]) return nullptr;
    }
    return &s;
  }

  void start(std::uint32_t r, std::uint32_t stream, const step& s) {
    auto& state = ranks_[r].streams[stream];
    state.busy = true;
    state.started = now_;
    if (s.pattern >= 0) {
      launch_communication(r, stream, s);
    } else {
      start_local(r, stream, s);
    }
  }

  void start_local(std::uint32_t r, std::uint32_t stream, const step& s) {
    auto& rank = ranks_[r];
    const int representative = rank_of(r);
    const double time = instance_.local_time(s.operation, representative).value();
    if (time == 0) return finish(r, stream);
    if (!s.kernel) {
      events_.schedule(now_ + to_picoseconds(time), {event_kind::local_end, r, stream});
      return;
    }
    rank.kernel.remaining = time;
    rank.kernel.call = time / std::max(1, instance_.costs().calls(s.operation, representative));
    rank.kernel.running = true;
    rank.kernel.since = now_;
    rank.kernel.slowdown = slowdown(rank);
    schedule_kernel_end(r);
  }

  double slowdown(const rank_state& rank) const {
    return rank.communicating > 0 ? instance_.on().device.communication_slowdown : 1;
  }

  void schedule_kernel_end(std::uint32_t r) {
    auto& kernel = ranks_[r].kernel;
    events_.schedule(now_ + to_picoseconds(kernel.remaining * kernel.slowdown),
                     {event_kind::kernel_end, r, ++kernel.version});
  }

  /// Communication began or ended beside the kernel: its rest runs at another speed.
  void change_kernel_speed(std::uint32_t r) {
    auto& rank = ranks_[r];
    if (!rank.kernel.running || slowdown(rank) == rank.kernel.slowdown) return;
    rank.kernel.remaining -= to_seconds(now_ - rank.kernel.since) / rank.kernel.slowdown;
    rank.kernel.remaining = std::max(0.0, rank.kernel.remaining);
    rank.kernel.since = now_;
    rank.kernel.slowdown = slowdown(rank);
    schedule_kernel_end(r);
  }

  // --- Communication -----------------------------------------------------------------------------------------------

  void launch_communication(std::uint32_t r, std::uint32_t stream, const step& s) {
    const auto wait = wait_for_room(ranks_[r], instance_.communication().channels(s.pattern));
    if (wait == 0) {
      begin_communication(r, stream, s);
    } else {
      events_.schedule(now_ + wait, {event_kind::room, r, stream});
    }
  }

  picoseconds wait_for_room(const rank_state& rank, int channels) const {
    const auto& kernel = rank.kernel;
    if (channels == 0 || !kernel.running || kernel.since == now_) return 0;
    const double left = std::max(0.0, kernel.remaining * kernel.slowdown - to_seconds(now_ - kernel.since));
    const double call = kernel.call * kernel.slowdown;
    return to_picoseconds(call > 0 ? std::fmod(left, call) : left);
  }

  void begin_communication(std::uint32_t r, std::uint32_t stream, const step& s) {
    auto& rank = ranks_[r];
    if (instance_.communication().channels(s.pattern) > 0) {
      ++rank.communicating;
      change_kernel_speed(r);
    }
    const int representative = rank_of(r);
    const auto sent = flow_on(s.lane, instance_.communication().sent(s.pattern, representative));
    const auto received = flow_on(s.lane, instance_.communication().received(s.pattern, representative));
    auto& pending = rank.streams[stream].flows_pending;
    pending = (sent >= 0) + (received >= 0 && received != sent);
    if (pending == 0) return end_communication(r, stream, s);
    if (sent >= 0) arrive(static_cast<std::uint32_t>(sent), s);
    if (received >= 0 && received != sent) arrive(static_cast<std::uint32_t>(received), s);
  }

  void arrive(std::uint32_t f, const step& s) {
    auto& flow = flows_[f];
    flow.operation = s.operation;
    if (++flow.arrived == static_cast<int>(flow.members.size())) {
      events_.schedule(now_ + flow.latency, {event_kind::flow_start, f, 0});
    }
  }

  void start_flow(std::uint32_t f) {
    const auto& flow = flows_[f];
    const int sender = instance_.communication()
                           .members(flow.pattern, symmetry_.flow_of_class[static_cast<std::size_t>(flow.pattern)]
                                                                         [static_cast<std::size_t>(flow.flow_class)])
                           .front();
    const auto bytes = instance_.work().bytes_sent(instance_.program().program[flow.operation], sender);
    network_.start(now_, f, flow.path, static_cast<double>(bytes.value()));
  }

  void complete_flows() {
    if (network_.next_completion() != now_) return;
    done_.clear();
    network_.complete(now_, done_);
    for (const auto f : done_) {
      auto& flow = flows_[f];
      flow.arrived = 0;
      for (const int member : flow.members) {
        const auto r = static_cast<std::uint32_t>(member);
        auto& state = ranks_[r].streams[flow.stream];
        if (--state.flows_pending == 0) end_communication(r, flow.stream, steps_[flow.stream][state.completed]);
      }
    }
  }

  void end_communication(std::uint32_t r, std::uint32_t stream, const step& s) {
    if (instance_.communication().channels(s.pattern) > 0) {
      --ranks_[r].communicating;
      change_kernel_speed(r);
    }
    finish(r, stream);
  }

  // --- Events ------------------------------------------------------------------------------------------------------

  void handle(const event& e) {
    if (e.kind == event_kind::flow_start) return start_flow(e.subject);
    auto& rank = ranks_[e.subject];
    if (e.kind == event_kind::room) {
      return begin_communication(e.subject, e.detail, steps_[e.detail][rank.streams[e.detail].completed]);
    }
    if (e.kind == event_kind::local_end) return finish(e.subject, e.detail);
    if (rank.kernel.version != e.detail) return;  // its speed has changed since
    rank.kernel.running = false;
    finish(e.subject, 0);
  }

  void finish(std::uint32_t r, std::uint32_t stream) {
    auto& rank = ranks_[r];
    auto& state = rank.streams[stream];
    const auto operation = steps_[stream][state.completed].operation;
    state.busy = false;
    ++state.completed;
    if (stream == 0) rank.compute += now_ - state.started;
    rank.end = now_;
    if (options_.record && now_ > state.started) {
      rank.intervals.push_back({operation, seconds(to_seconds(state.started)), seconds(to_seconds(now_))});
    }
    touch(r);
  }

  // --- Results -----------------------------------------------------------------------------------------------------

  void require_finished() const {
    std::string waiting;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::size_t s = 0; s < streams_; ++s) {
        if (ranks_[r].streams[s].completed < steps_[s].size() && waiting.size() < 400) waiting += describe_wait(r, s);
      }
    }
    if (!waiting.empty()) {
      throw std::logic_error(fmt::format("{} cannot progress:{}", instance_.program().name, waiting));
    }
  }

  std::string describe_wait(std::size_t r, std::size_t stream) const {
    const auto& state = ranks_[r].streams[stream];
    const auto& s = steps_[stream][state.completed];
    const auto kind = name_of(instance_.program().program[s.operation].kind);
    if (state.busy) return fmt::format(" rank {} waits in operation {} ({}) for its peers;", rank_of(r), s.operation, kind);
    std::string needs;
    for (std::size_t other = 0; other < streams_; ++other) {
      if (ranks_[r].streams[other].completed < s.needs[other]) {
        needs += fmt::format(" {} operations of stream {}", s.needs[other], instance_.program().streams[other]);
      }
    }
    return fmt::format(" rank {} waits before operation {} ({}) for{};", rank_of(r), s.operation, kind, needs);
  }

  timeline result() {
    timeline t;
    t.class_of = symmetry_.rank_class;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      t.ranks.push_back({rank_of(r), seconds(to_seconds(ranks_[r].end)), seconds(to_seconds(ranks_[r].compute)),
                         std::move(ranks_[r].intervals)});
    }
    const double duration = t.duration().value();
    const auto bytes = network_.bytes_carried(now_);
    for (std::size_t l = 0; l < symmetry_.link_of_class.size(); ++l) {
      const auto id = symmetry_.link_of_class[l];
      const double possible = instance_.on().network.links()[id].capacity.value() * duration;
      t.links.push_back({id, symmetry_.links_in_class[l], bytes[l], possible > 0 ? bytes[l] / possible : 0});
    }
    std::stable_sort(t.links.begin(), t.links.end(),
                     [](const auto& a, const auto& b) { return a.utilisation > b.utilisation; });
    return t;
  }

  const instance& instance_;
  simulation_options options_;
  symmetry symmetry_;
  std::size_t streams_;
  std::vector<std::vector<step>> steps_;  ///< by stream
  std::vector<std::pair<int, int>> lanes_;
  std::vector<std::size_t> first_flow_of_lane_;
  std::vector<rank_state> ranks_;
  std::vector<flow_state> flows_;
  flow_network network_;
  event_queue<event> events_;
  picoseconds now_ = 0;
  std::vector<std::uint32_t> touched_, ready_;
  std::vector<flow_tag> done_;
};

}  // namespace

timeline simulate(const instance& i, const simulation_options& options) { return simulation(i, options).run(); }

}  // namespace attnsim
