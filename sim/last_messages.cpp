#include "sim/last_messages.hpp"

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>

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
  found.find_parts();
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

/// As small as messages allow, but of some tens of classes.
void last_messages::find_parts() {
  constexpr std::size_t some = 64;
  const auto classes = symmetry_.rank_of_class.size();
  boost::disjoint_sets_with_storage<> together(classes);
  for (const auto& lane : lanes_) {
    for (const auto& f : lane.flows) together.union_set(f.sender, f.receiver);
  }
  std::vector<std::size_t> members(classes);
  for (std::size_t c = 0; c < classes; ++c) ++members[together.find_set(c)];
  constexpr auto none = static_cast<std::uint32_t>(-1);
  part_of_.assign(classes, none);
  std::size_t size = some;
  for (std::size_t c = 0; c < classes; ++c) {
    const auto first = together.find_set(c);
    if (part_of_[first] == none) {
      if (size >= some) {
        parts_.emplace_back();
        size = 0;
      }
      part_of_[first] = static_cast<std::uint32_t>(parts_.size() - 1);
      size += members[first];
    }
    part_of_[c] = part_of_[first];
    place_.push_back(static_cast<std::uint32_t>(parts_[part_of_[c]].size()));
    parts_[part_of_[c]].push_back(static_cast<std::uint32_t>(c));
  }
}

/// The steps, one after the other, each for all classes of a part.
class last_messages::work {
 public:
  work(const last_messages& all, const part& classes, const start& from,
       const std::vector<done>& before)
      : all_(all),
        placed_(all.placed_),
        classes_(classes),
        traffic_end_(from.traffic),
        begin_(classes.size()),
        end_(classes.size()) {
    for (const auto& of_stream : from.ends) {
      auto& latest = ends_.emplace_back(all.kept_, std::vector<picoseconds>(classes.size()));
      for (std::size_t r = 0; r < classes.size(); ++r) latest.front()[r] = of_stream[classes[r]];
    }
    for (const auto c : classes) {
      ranks_.push_back(before[c]);
      speeds_.push_back(placed_.speed_of(rank(c)));
      before_.push_back(before[c].end);
    }
    for (const auto& lane : all.lanes_) add_messages(lane);
  }

  /// Keeps the intervals of a class.
  void watch(std::size_t place, std::vector<interval>& intervals) {
    watched_ = place;
    intervals_ = &intervals;
  }

  /// False where something before is not over in time.
  bool run() {
    for (const auto& step : all_.steps_) {
      set_begin(step);
      if (step.first && !all_before_is_over(step)) return false;
      step.op.lane < 0 ? do_locally(step.op) : move(step.op);
      finish(step);
    }
    return std::all_of(ranks_.begin(), ranks_.end(), [](const done& r) { return r.end != never; });
  }

  void tell(std::vector<done>& ranks) const {
    for (std::size_t r = 0; r < classes_.size(); ++r) ranks[classes_[r]] = ranks_[r];
  }

 private:
  /// A lane's messages, one of each flow that a class of the part sends; times kept while they have as many bytes.
  struct messages {
    double bytes = -1;
    std::vector<const flow*> flows;
    std::vector<std::uint32_t> sender, receiver;  ///< by message: of the part's classes
    std::vector<picoseconds> latency, transfer, end;
    std::vector<int> sent, received;  ///< by class: of the messages; -1: none
  };

  int rank(std::size_t rank_class) const { return all_.symmetry_.rank_of_class[rank_class]; }

  void add_messages(const lane_flows& lane) {
    auto& m = messages_.emplace_back();
    if (lane.sent.empty()) return;
    std::vector<int> by_sender(classes_.size(), -1);
    for (const auto c : classes_) {
      m.sent.push_back(-1);
      if (lane.sent[c] < 0) continue;
      const auto& f = lane.flows[static_cast<std::size_t>(lane.sent[c])];
      m.sent.back() = static_cast<int>(m.flows.size());
      by_sender[all_.place_[f.sender]] = m.sent.back();
      m.flows.push_back(&f);
      m.sender.push_back(all_.place_[f.sender]);
      m.receiver.push_back(all_.place_[f.receiver]);
    }
    for (const auto c : classes_) {
      const int received = lane.received[c];
      m.received.push_back(-1);
      if (received >= 0)
        m.received.back() =
            by_sender[all_.place_[lane.flows[static_cast<std::size_t>(received)].sender]];
    }
    m.end.resize(m.flows.size());
  }

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
        time = placed_.local_time(op.operation, rank(classes_[r])).value();
      }
      if (time > 0) begin_[r] = later(begin_[r], op.gap);
      end_[r] = time > 0 ? later(begin_[r], to_picoseconds(time)) : begin_[r];
    }
  }

  void move(const stream_operation& op) {
    auto& m = messages_[static_cast<std::size_t>(op.lane)];
    set_bytes(m, op.bytes * op.stretch);
    for (auto& begin : begin_) begin = later(begin, op.gap);
    for (std::size_t n = 0; n < m.flows.size(); ++n) {
      const auto arrived = std::max(begin_[m.sender[n]], begin_[m.receiver[n]]);
      m.end[n] = later(later(arrived, m.latency[n]), m.transfer[n]);
    }
    for (std::size_t r = 0; r < begin_.size(); ++r) {
      const int sent = m.sent[r], received = m.received[r];
      end_[r] = begin_[r];
      if (sent >= 0) end_[r] = m.end[static_cast<std::size_t>(sent)];
      if (received >= 0) end_[r] = std::max(end_[r], m.end[static_cast<std::size_t>(received)]);
      if (sent >= 0) ranks_[r].bytes_sent += op.bytes;
    }
  }

  static void set_bytes(messages& m, double bytes) {
    if (m.bytes == bytes) return;
    m.bytes = bytes;
    m.latency.clear();
    m.transfer.clear();
    for (const auto* f : m.flows) {
      m.latency.push_back(to_picoseconds(f->latency.of(bytes).value()));
      m.transfer.push_back(to_picoseconds(bytes / f->share / f->rate));
    }
  }

  void finish(const step& s) {
    if (intervals_ && end_[watched_] > begin_[watched_]) {
      intervals_->push_back({s.op.operation, seconds(to_seconds(begin_[watched_])),
                             seconds(to_seconds(end_[watched_]))});
    }
    for (std::size_t r = 0; r < end_.size(); ++r) {
      if (s.stream == 0) ranks_[r].compute += end_[r] - begin_[r];
      ranks_[r].end = std::max(ranks_[r].end, end_[r]);
    }
    auto& ends = ends_[s.stream];
    std::rotate(ends.begin(), ends.end() - 1, ends.end());
    ends.front().swap(end_);
  }

  const last_messages& all_;
  const placed_schedule& placed_;
  const part& classes_;  // all below is by their places in it
  picoseconds traffic_end_;
  std::vector<std::vector<std::vector<picoseconds>>> ends_;  ///< by stream: of its latest
  std::vector<done> ranks_;
  std::vector<double> speeds_;
  std::vector<picoseconds> before_;       ///< when all before is over
  std::vector<picoseconds> begin_, end_;  ///< of the operation
  std::vector<messages> messages_;        ///< by lane
  std::size_t watched_ = 0;
  std::vector<interval>* intervals_ = nullptr;
};

bool last_messages::run(const start& from, std::vector<done>& ranks) const {
  for (const auto& part : parts_) {
    work of_part(*this, part, from, ranks);
    if (!of_part.run()) return false;
    of_part.tell(ranks);
  }
  return true;
}

void last_messages::record(const start& from, const std::vector<done>& before,
                           std::size_t rank_class, std::vector<interval>& intervals) const {
  work of_part(*this, parts_[part_of_[rank_class]], from, before);
  of_part.watch(place_[rank_class], intervals);
  of_part.run();
}

}  // namespace attnsim
