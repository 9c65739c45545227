#include "sim/last_messages.hpp"

#include <algorithm>

namespace attnsim {
namespace {

constexpr std::size_t few_messages = 4;
constexpr std::uint32_t furthest_back = 8;

/// Communication occupies nothing on a device that a kernel could wait for, or it for a kernel.
bool kernels_run_freely(const stream_programs& programs) {
  return std::all_of(programs.lanes.begin(), programs.lanes.end(),
                     [](const lane& l) { return l.channels == 0; });
}

/// From here on all is local or between two ranks, and nothing slows down what is local.
std::uint32_t first_of_the_end(const std::vector<operation>& program, bool free_kernels) {
  const auto belongs = [&](op_kind kind) {
    if (is_communication(kind)) return kind == op_kind::shift || kind == op_kind::transpose;
    return free_kernels || !is_kernel(kind);
  };
  auto first = program.size();
  while (first > 0 && belongs(program[first - 1].kind)) --first;
  return static_cast<std::uint32_t>(first);
}

}  // namespace

std::optional<last_messages> last_messages::find(const placed_schedule& i, const symmetry& s,
                                                 const stream_programs& programs) {
  last_messages found(i, s, programs);
  if (programs.queues > 0 || programs.run_ahead || !found.split(programs)) return {};
  found.lanes_.resize(programs.lanes.size());
  for (const auto& step : found.steps_) {
    if (step.op.lane < 0) continue;
    const auto l = static_cast<std::size_t>(step.op.lane);
    if (found.lanes_[l].sent.empty()) found.add_lane(programs.lanes[l], found.lanes_[l]);
  }
  if (found.some_link_can_be_full()) return {};
  return found;
}

/// False where there are few messages, or an operation waits for one that is long past.
bool last_messages::split(const stream_programs& programs) {
  const auto first = first_of_the_end(placed_.program().program, kernels_run_freely(programs));
  for (std::uint32_t s = 0; s < programs.streams.size(); ++s) {
    const auto& all = programs.streams[s];
    const auto from = std::partition_point(
        all.begin(), all.end(), [&](const stream_operation& op) { return op.operation < first; });
    for (auto op = from; op != all.end(); ++op) steps_.push_back({s, *op, {}, op == from});
    before_.streams[s].resize(static_cast<std::size_t>(from - all.begin()));
  }
  std::sort(steps_.begin(), steps_.end(),
            [](const step& a, const step& b) { return a.op.operation < b.op.operation; });
  std::size_t messages = 0;
  std::vector<std::size_t> issued;
  for (const auto& stream : before_.streams) issued.push_back(stream.size());
  for (auto& step : steps_) {
    const auto& op = step.op;
    for (std::uint32_t other = 0; other < issued.size(); ++other) {
      const auto needs = other == step.stream ? issued[other] : op.needs[other];
      const auto back = static_cast<std::uint32_t>(issued[other] - needs);
      if (needs == 0 || (back > 0 && needs <= before_.streams[other].size())) continue;
      if (back > furthest_back) return false;
      step.waits.push_back({other, back});
      kept_ = std::max(kept_, back + 1);
    }
    ++issued[step.stream];
    if (op.lane < 0) continue;
    ++messages;
    if (op.bytes <= 0) return false;
  }
  return messages >= few_messages;
}

void last_messages::add_lane(const lane& l, lane_flows& added) const {
  const auto p = static_cast<std::size_t>(l.pattern);
  const auto& communication = placed_.communication();
  const auto links = placed_.on().network.links();
  const auto class_of = [&](int rank) {
    return static_cast<std::uint32_t>(symmetry_.rank_class[static_cast<std::size_t>(rank)]);
  };
  added.pattern = l.pattern;
  for (std::size_t c = 0; c < symmetry_.flow_of_class[p].size(); ++c) {
    const int number = symmetry_.flow_of_class[p][c];
    const auto form = communication.form(l.pattern, number);
    const auto members = communication.members(l.pattern, number);
    flow f{.latency = form.latency,
           .share = form.share,
           .rate = form.rate_limit / form.share,
           .sender = class_of(members.front()),
           .receiver = class_of(members.back())};
    for (const auto& use : symmetry_.uses[p][c]) {
      const auto capacity = links[symmetry_.link_of_class[use.link]].capacity.value();
      f.rate = std::min(f.rate, capacity / use.weight);
    }
    added.flows.push_back(f);
  }
  const auto class_of_flow = [&](int f) {
    return f < 0 ? -1 : symmetry_.flow_class[p][static_cast<std::size_t>(f)];
  };
  for (const int rank : symmetry_.rank_of_class) {
    added.sent.push_back(class_of_flow(communication.sent(l.pattern, rank)));
    added.received.push_back(class_of_flow(communication.received(l.pattern, rank)));
  }
}

/// With all messages of all lanes at once.
bool last_messages::some_link_can_be_full() const {
  constexpr double rounding = 1 + 1e-12;
  std::vector<double> load(symmetry_.link_of_class.size());
  for (const auto& l : lanes_) {
    for (std::size_t c = 0; c < l.flows.size(); ++c) {
      if (l.flows[c].rate == unlimited) return true;
      for (const auto& use : symmetry_.uses[static_cast<std::size_t>(l.pattern)][c])
        load[use.link] += use.weight * l.flows[c].rate;
    }
  }
  const auto links = placed_.on().network.links();
  for (std::size_t c = 0; c < load.size(); ++c) {
    if (load[c] > links[symmetry_.link_of_class[c]].capacity.value() * rounding) return true;
  }
  return false;
}

std::vector<double> last_messages::bytes_carried() const {
  std::vector<double> of_lane(lanes_.size()), bytes(symmetry_.link_of_class.size());
  for (const auto& step : steps_) {
    if (step.op.lane < 0) continue;
    of_lane[static_cast<std::size_t>(step.op.lane)] += step.op.bytes * step.op.stretch;
  }
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    const auto& flows = lanes_[l].flows;
    for (std::size_t c = 0; c < flows.size(); ++c) {
      for (const auto& use : symmetry_.uses[static_cast<std::size_t>(lanes_[l].pattern)][c])
        bytes[use.link] += use.weight * of_lane[l] / flows[c].share;
    }
  }
  return bytes;
}

/// The steps, one after the other, each for all classes of ranks.
class last_messages::work {
 public:
  work(const last_messages& all, start from, std::vector<done>& ranks, const watched& seen)
      : all_(all),
        placed_(all.placed_),
        traffic_end_(from.traffic),
        ranks_(ranks),
        seen_(seen),
        begin_(ranks.size()),
        end_(ranks.size()),
        moves_(all.lanes_.size()) {
    for (auto& of_stream : from.ends) {
      ends_.emplace_back(all.kept_, std::vector<picoseconds>(ranks.size()));
      ends_.back().front() = std::move(of_stream);
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      speeds_.push_back(placed_.speed_of(rank(r)));
      before_.push_back(ranks[r].end);
    }
  }

  bool run() {
    for (const auto& step : all_.steps_) {
      set_begin(step);
      if (step.first && !all_before_is_over(step)) return false;
      step.op.lane < 0 ? do_locally(step.op) : move(step.op);
      finish(step);
    }
    return std::all_of(ranks_.begin(), ranks_.end(), [](const done& r) { return r.end != never; });
  }

 private:
  /// A message of each flow; kept while those of the lane have as many bytes.
  struct moves {
    double bytes = -1;
    std::vector<picoseconds> latency, transfer, end;  ///< by flow
  };

  int rank(std::size_t rank_class) const { return all_.symmetry_.rank_of_class[rank_class]; }

  void set_begin(const step& s) {
    std::fill(begin_.begin(), begin_.end(), 0);
    for (const auto& wait : s.waits) {
      const auto& ends = ends_[wait.stream][wait.back];
      for (std::size_t r = 0; r < begin_.size(); ++r) begin_[r] = std::max(begin_[r], ends[r]);
    }
  }

  /// On each class, and on the network when it moves.
  bool all_before_is_over(const step& s) const {
    for (std::size_t r = 0; r < begin_.size(); ++r) {
      if (begin_[r] < before_[r]) return false;
      if (s.op.lane >= 0 && begin_[r] < traffic_end_) return false;
    }
    return true;
  }

  void do_locally(const stream_operation& op) {
    const bool varies = !placed_.is_as_modelled() || (op.kernel && !placed_.same_on_all_ranks());
    double time = -1, speed = -1;
    for (std::size_t r = 0; r < begin_.size(); ++r) {
      if (varies || speeds_[r] != speed) {
        speed = speeds_[r];
        time = placed_.local_time(op.operation, rank(r)).value();
      }
      if (time > 0) begin_[r] = later(begin_[r], op.gap);
      end_[r] = time > 0 ? later(begin_[r], to_picoseconds(time)) : begin_[r];
    }
  }

  void move(const stream_operation& op) {
    const auto& lane = all_.lanes_[static_cast<std::size_t>(op.lane)];
    auto& m = moves_[static_cast<std::size_t>(op.lane)];
    set_bytes(m, lane, op.bytes * op.stretch);
    for (auto& begin : begin_) begin = later(begin, op.gap);
    for (std::size_t f = 0; f < lane.flows.size(); ++f) {
      const auto arrived = std::max(begin_[lane.flows[f].sender], begin_[lane.flows[f].receiver]);
      m.end[f] = later(later(arrived, m.latency[f]), m.transfer[f]);
    }
    for (std::size_t r = 0; r < begin_.size(); ++r) {
      const int sent = lane.sent[r], received = lane.received[r];
      end_[r] = begin_[r];
      if (sent >= 0) end_[r] = m.end[static_cast<std::size_t>(sent)];
      if (received >= 0) end_[r] = std::max(end_[r], m.end[static_cast<std::size_t>(received)]);
      if (sent >= 0) ranks_[r].bytes_sent += op.bytes;
    }
  }

  static void set_bytes(moves& m, const lane_flows& lane, double bytes) {
    if (m.bytes == bytes) return;
    m.bytes = bytes;
    m.latency.clear();
    m.transfer.clear();
    m.end.resize(lane.flows.size());
    for (const auto& f : lane.flows) {
      m.latency.push_back(to_picoseconds(f.latency.of(bytes).value()));
      m.transfer.push_back(to_picoseconds(bytes / f.share / f.rate));
    }
  }

  void finish(const step& s) {
    if (seen_.intervals && end_[seen_.rank_class] > begin_[seen_.rank_class]) {
      seen_.intervals->push_back({s.op.operation, seconds(to_seconds(begin_[seen_.rank_class])),
                                  seconds(to_seconds(end_[seen_.rank_class]))});
    }
    if (s.stream == 0) {
      for (std::size_t r = 0; r < end_.size(); ++r) ranks_[r].compute += end_[r] - begin_[r];
    }
    for (std::size_t r = 0; r < end_.size(); ++r) ranks_[r].end = std::max(ranks_[r].end, end_[r]);
    auto& ends = ends_[s.stream];
    std::rotate(ends.begin(), ends.end() - 1, ends.end());
    ends.front().swap(end_);
  }

  const last_messages& all_;
  const placed_schedule& placed_;
  picoseconds traffic_end_;
  std::vector<std::vector<std::vector<picoseconds>>>
      ends_;  ///< by stream: of its latest operations, by class
  std::vector<done>& ranks_;
  watched seen_;
  std::vector<double> speeds_;
  std::vector<picoseconds> before_;       ///< by class: when all before is over
  std::vector<picoseconds> begin_, end_;  ///< by class: of the operation
  std::vector<moves> moves_;              ///< by lane
};

bool last_messages::run(start from, std::vector<done>& ranks, const watched& seen) const {
  return work(*this, std::move(from), ranks, seen).run();
}

}  // namespace attnsim
