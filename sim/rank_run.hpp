// What one rank does: its streams in order, the kernel on its device, the communication beside it, and a framework's host that
// waits. Who runs it keeps the time and the flows: one loop over the events of all ranks (simulator.cpp), or ranks side by side
// that each go as far as they can (chain.hpp).
//
// `Surroundings` has
//   picoseconds now() const
//   seconds local_time(const stream_operation&) const            of one that stays on the rank's device
//   double parts(const stream_operation&) const                 of a kernel (model/cost/local.hpp)
//   void wait(std::uint32_t stream, picoseconds until)          calls end_wait(stream) then; a later call replaces an earlier one
//   int arrive(const stream_operation&, std::uint32_t stream)   the rank waits for so many flows of a round: end_flow(stream) for each
//   void finished(const stream_operation&, const stream_state&) an operation is over
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/cost/placed_schedule.hpp"
#include "sim/clock.hpp"
#include "sim/kernel_run.hpp"
#include "sim/stream_programs.hpp"

namespace attnsim {

/// What it waits for while busy is an event of its own, or its flows.
struct stream_state {
  std::uint32_t completed = 0;  ///< operations done
  std::uint16_t flows_pending = 0;
  std::uint16_t round = 0;  ///< of its communication
  bool busy = false;
  bool awaits_launch = false;  ///< or its gap is not over
  bool awaits_links = false;   ///< has begun to communicate, and they wake
  picoseconds started = 0;
};

/// A framework's host that waits: what it launches after communication that it waits for is launched later by as long.
struct waiting_host {
  std::size_t wait = 0;  ///< of those in the program, the first that is not over
  picoseconds late = 0;  ///< than if it had launched ahead
};

struct rank_state {
  std::array<stream_state, most_streams> streams{};
  kernel_run kernel;
  waiting_host host;
  std::array<int, 3> communicating{};  ///< communication that holds multiprocessors, by transport
  double computed = 0;                 ///< seconds of kernels that have begun, at full speed
  picoseconds compute = 0;
  picoseconds end = 0;
  double bytes_sent = 0;
};

/// What all ranks have in common.
struct rank_rules {
  const placed_schedule& placed;
  const stream_programs& programs;
  std::vector<std::uint32_t>
      waits;  ///< operations at whose end the host goes on, in the program's order
  std::uint32_t streams = static_cast<std::uint32_t>(programs.streams.size());

  const lane& lane_of(const stream_operation& op) const {
    return programs.lanes[static_cast<std::size_t>(op.lane)];
  }
};

using launch_list = std::vector<picoseconds>;

template <typename Surroundings>
class rank_run {
 public:
  /// References are kept. `launched`: by operation; empty: long before.
  rank_run(const rank_rules& rules, const launch_list& launched, rank_state& state,
           Surroundings& around)
      : rules_(rules), launched_(launched), state_(state), around_(around) {}

  /// Starts what can start, in launch order: of two operations that become ready together the first launched gets the device
  /// first.
  void start_ready() {
    int ready = 0;
    do {
      const stream_operation* first = nullptr;
      std::uint32_t stream = 0;
      ready = 0;
      for (std::uint32_t s = 0; s < rules_.streams; ++s) {
        const auto* candidate = next_ready(s);
        if (!candidate) continue;
        ++ready;
        if (!first || candidate->operation < first->operation) {
          first = candidate;
          stream = s;
        }
      }
      has_finished_ = false;
      if (first) start(stream, *first);
    } while (ready > 1 || has_finished_);
  }

  /// The same of a rank on which all that was ready had been started before this: only the end of an operation makes others ready.
  void start_made_ready() {
    if (has_finished_) start_ready();
  }

  /// A stream's local operation ends, it is launched, or there is room for its communication.
  void end_wait(std::uint32_t s) {
    const auto& op = current(s);
    if (state_.streams[s].awaits_launch) return begin(s, op);
    if (op.lane >= 0) return begin_communication(s, op);
    if (op.kernel) state_.kernel.stop();
    finish(s);
  }

  /// A flow of the stream's communication ends.
  void end_flow(std::uint32_t s) {
    auto& stream = state_.streams[s];
    if (--stream.flows_pending > 0) return;
    ++stream.round;
    communicate(s, current(s));
  }

 private:
  static constexpr std::uint32_t compute_stream = 0;

  const stream_operation& current(std::uint32_t s) const {
    return rules_.programs.streams[s][state_.streams[s].completed];
  }

  const stream_operation* next_ready(std::uint32_t s) const {
    const auto& stream = state_.streams[s];
    const auto& program = rules_.programs.streams[s];
    if (stream.busy || stream.completed == program.size()) return nullptr;
    const auto& op = program[stream.completed];
    if (waits_before(op)) return nullptr;
    for (std::uint32_t other = 0; other < rules_.streams; ++other) {
      if (state_.streams[other].completed < op.needs[other]) return nullptr;
    }
    return rules_.programs.queues > 0 && queues_behind_another(s, op) ? nullptr : &op;
  }

  /// One that was launched before it into the same hardware queue has not ended.
  bool queues_behind_another(std::uint32_t s, const stream_operation& op) const {
    const auto queues = rules_.programs.queues;
    for (std::uint32_t other = s % queues; other < rules_.streams; other += queues) {
      const auto& program = rules_.programs.streams[other];
      const auto completed = state_.streams[other].completed;
      if (completed < program.size() && program[completed].operation < op.operation) return true;
    }
    return false;
  }

  /// The host has not come to it, and waits for something before it.
  bool waits_before(const stream_operation& op) const {
    const auto wait = state_.host.wait;
    return wait < rules_.waits.size() && rules_.waits[wait] < op.operation;
  }

  picoseconds launch_of(const stream_operation& op) const {
    return launched_.empty() ? 0 : launched_[op.operation] + state_.host.late;
  }

  /// When it begins at the earliest: after its gap, and launched.
  picoseconds earliest(const stream_operation& op) const {
    const auto takes_time = [&] { return op.lane >= 0 || around_.local_time(op).value() > 0; };
    const auto now = around_.now();
    return std::max(launch_of(op), op.gap > 0 && takes_time() ? later(now, op.gap) : now);
  }

  void start(std::uint32_t s, const stream_operation& op) {
    auto& stream = state_.streams[s];
    stream.busy = true;
    const auto from = earliest(op);
    stream.awaits_launch = around_.now() < from;
    stream.awaits_launch ? around_.wait(s, from) : begin(s, op);
  }

  void begin(std::uint32_t s, const stream_operation& op) {
    auto& stream = state_.streams[s];
    stream.awaits_launch = false;
    stream.started = around_.now();
    if (op.lane < 0) return start_local(s, op);
    // Of two that wait for the same the first launched starts first, in a graph the first captured. In a run that is launched one by
    // one from idle both are launched by then, and communication has the stream of higher priority (validate/executor).
    const bool one_by_one = rules_.placed.chosen().start == run_start::idle;
    const bool goes_first = one_by_one || op.operation < state_.kernel.operation();
    const auto now = around_.now();
    const auto room = rules_.lane_of(op).channels > 0 ? state_.kernel.room(now, goes_first) : now;
    room == now ? begin_communication(s, op) : around_.wait(s, room);
  }

  void start_local(std::uint32_t s, const stream_operation& op) {
    const auto now = around_.now();
    const double time = around_.local_time(op).value();
    if (time == 0) return finish(s);
    if (!op.kernel) return around_.wait(s, later(now, to_picoseconds(time)));
    state_.kernel.begin(now, op.operation, sustained(time), around_.parts(op), slowdown());
    around_.wait(s, state_.kernel.end());
  }

  /// Of a run from idle devices, which cools them before.
  double sustained(double time) {
    if (rules_.placed.chosen().start == run_start::in_sequence) return time;
    const auto& idle = rules_.placed.on().device.idle_start;
    const seconds before(std::exchange(state_.computed, state_.computed + time));
    return idle.sustained_time(before, seconds(time)).value();
  }

  double slowdown() const {
    double most = 1;
    for (const auto kind : {link_kind::nvlink, link_kind::pcie, link_kind::network}) {
      if (state_.communicating[static_cast<std::size_t>(kind)] > 0)
        most = std::max(most, rules_.placed.on().device.slowdown(kind));
    }
    return most;
  }

  void begin_communication(std::uint32_t s, const stream_operation& op) {
    const auto& l = rules_.lane_of(op);
    auto& waits = state_.streams[s].awaits_links;
    if (l.channels > 0 && !waits) occupy_device(l.transport, +1);
    waits = op.wake > 0 && !waits;
    if (waits) return around_.wait(s, later(around_.now(), op.wake));
    state_.streams[s].round = 0;
    communicate(s, op);
  }

  /// Goes through rounds until one takes time.
  void communicate(std::uint32_t s, const stream_operation& op) {
    auto& stream = state_.streams[s];
    for (; stream.round < op.rounds; ++stream.round) {
      stream.flows_pending = static_cast<std::uint16_t>(around_.arrive(op, s));
      if (stream.flows_pending > 0) return;
    }
    end_communication(s);
  }

  void end_communication(std::uint32_t s) {
    const auto& l = rules_.lane_of(current(s));
    if (l.channels > 0) occupy_device(l.transport, -1);
    finish(s);
  }

  /// One communication operation more or less beside the kernel.
  void occupy_device(link_kind transport, int change) {
    state_.communicating[static_cast<std::size_t>(transport)] += change;
    if (state_.kernel.slow_down(around_.now(), slowdown()))
      around_.wait(compute_stream, state_.kernel.end());
  }

  void finish(std::uint32_t s) {
    auto& stream = state_.streams[s];
    const auto& op = current(s);
    const auto now = around_.now();
    if (auto& host = state_.host;
        host.wait < rules_.waits.size() && rules_.waits[host.wait] == op.operation) {
      host.late = std::max(host.late, now - launched_[op.operation]);
      ++host.wait;
    }
    if (s == compute_stream) state_.compute += now - stream.started;
    around_.finished(op, stream);
    state_.end = now;
    stream.busy = false;
    ++stream.completed;
    has_finished_ = true;
  }

  const rank_rules& rules_;
  const launch_list& launched_;
  rank_state& state_;
  Surroundings& around_;
  bool has_finished_ = false;  ///< an operation, since it was last seen what is ready
};

}  // namespace attnsim
