#include "model/cost/analytic.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/cost/host_time.hpp"

namespace attnsim {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// How long a flow takes: a fixed latency, then bytes at the time per byte of its slowest links.
struct flow_time {
  flow_latency latency;
  double per_byte = 0;
  std::vector<link_id> slowest;   ///< sorted
  double sent = 1, received = 1;  ///< shares of what it sends and receives
};

/// A rank's communication in one pattern: the slower of what it sends and receives.
flow_time time_of(const placed_schedule& i, int pattern, int rank) {
  const auto& communication = i.communication();
  std::vector<link_use> uses;
  flow_time t;
  for (const int flow :
       {communication.sent(pattern, rank), communication.received(pattern, rank)}) {
    if (flow < 0) continue;
    const auto form = communication.form(pattern, flow);
    t.latency = std::max(t.latency, form.latency);
    t.per_byte = std::max(t.per_byte, 1 / form.rate_limit);
    uses.insert(uses.end(), form.uses.begin(), form.uses.end());
  }
  const auto per_byte = [&](const link_use& use) {
    return communication.load(pattern, use.link) /
           i.on().network.links()[use.link].capacity.value();
  };
  for (const auto& use : uses) t.per_byte = std::max(t.per_byte, per_byte(use));
  for (const auto& use : uses) {
    if (per_byte(use) >= t.per_byte * (1 - 1e-9)) t.slowest.push_back(use.link);
  }
  std::sort(t.slowest.begin(), t.slowest.end());
  if (const int flow = communication.sent(pattern, rank); flow >= 0)
    t.sent = communication.form(pattern, flow).share;
  if (const int flow = communication.received(pattern, rank); flow >= 0)
    t.received = communication.form(pattern, flow).share;
  return t;
}

bool intersect(const std::vector<link_id>& a, const std::vector<link_id>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](link_id l) { return std::binary_search(b.begin(), b.end(), l); });
}

/// What all ranks that are followed have in common: the bytes of each communication, stretched as its messages are.
class communication_bytes {
 public:
  explicit communication_bytes(const placed_schedule& i)
      : placed_(i), known_(i.program().program.size(), unknown) {}

  /// None where nothing moves.
  double of(std::size_t op, int rank) {
    const auto& communication = placed_.communication();
    const int pattern = communication.pattern_of(op);
    const bool as_any = placed_.is_as_modelled() && communication.sent(pattern, rank) >= 0;
    if (!as_any) return worked_out(op, rank);
    auto& bytes = known_[op];
    if (bytes == unknown) bytes = worked_out(op, rank);
    return bytes;
  }

 private:
  static constexpr double unknown = -1;

  double worked_out(std::size_t op, int rank) const {
    const auto kind = placed_.communication().transport(placed_.communication().pattern_of(op));
    return placed_.sent_bytes(op, rank) * stretch(placed_.work(), placed_.program().program[op],
                                                  placed_.on().device.transport(kind));
  }

  const placed_schedule& placed_;
  std::vector<double> known_;  ///< by operation, of ranks that send
};

class one_rank {
 public:
  one_rank(const placed_schedule& i, int rank, communication_bytes& bytes)
      : placed_(i), rank_(rank), bytes_(bytes), streams_(i.program().streams.size()) {
    const int patterns = i.communication().patterns();
    for (int p = 0; p < patterns; ++p) times_.push_back(time_of(i, p, rank));
    for (const auto& a : times_) {
      for (const auto& b : times_) share_.push_back(intersect(a.slowest, b.slowest));
    }
    const auto& program = i.program().program;
    for (std::size_t op = 0; op < program.size(); ++op) {
      streams_[static_cast<std::size_t>(program[op].stream)].operations.push_back(op);
    }
  }

  analytic_estimate run() {
    while (true) {
      while (start_ready()) {
      }
      const double step = time_to_next();
      if (step == never) break;
      advance(step);
    }
    return {seconds(now_), seconds(compute_), rank_};
  }

 private:
  struct stream {
    std::vector<std::size_t> operations;
    std::size_t completed = 0;
    bool busy = false;
    double fixed = 0;   ///< seconds of latency or computation left
    double shared = 0;  ///< seconds of a link to itself left after that
    double left = 0;    ///< seconds left as things are
    std::size_t pattern = 0;

    bool moves() const { return busy && fixed <= 0 && shared > 0; }
  };

  bool start_ready() {
    bool any = false;
    for (auto& s : streams_) {
      if (s.busy || s.completed == s.operations.size() || !ready(s.operations[s.completed]))
        continue;
      start(s, s.operations[s.completed]);
      any = true;
    }
    return any;
  }

  bool ready(std::size_t op) const {
    const auto& needs = placed_.program().program[op].needs;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i].completed < needs[i]) return false;
    }
    return !queues_behind_another(op);
  }

  double local_time(std::size_t op) {
    const auto time = placed_.local_time(op, rank_);
    const bool idle = placed_.chosen().start != run_start::in_sequence;
    if (!idle || !is_kernel(placed_.program().program[op].kind)) return time.value();
    const auto before = std::exchange(computed_, computed_ + time);
    return placed_.on().device.idle_start.sustained_time(before, time).value();
  }

  /// As sim/rank_run.hpp has it.
  bool queues_behind_another(std::size_t op) const {
    const auto queues = static_cast<std::size_t>(placed_.on().device.queues);
    if (queues == 0 || placed_.chosen().start == run_start::idle_graph) return false;
    const auto own = static_cast<std::size_t>(placed_.program().program[op].stream);
    for (std::size_t i = own % queues; i < streams_.size(); i += queues) {
      const auto& s = streams_[i];
      if (s.completed < s.operations.size() && s.operations[s.completed] < op) return true;
    }
    return false;
  }

  void start(stream& s, std::size_t op) {
    const int pattern = placed_.communication().pattern_of(op);
    s.shared = 0;
    if (pattern < 0) {
      s.fixed = local_time(op);
      compute_ += s.fixed;
      if (s.fixed > 0) s.fixed += gap_before(placed_, op).value();
    } else {
      s.pattern = static_cast<std::size_t>(pattern);
      const auto& t = times_[s.pattern];
      const double bytes = bytes_.of(op, rank_);
      s.fixed = (t.latency.of(bytes) + gap_before(placed_, op)).value();
      s.shared = bytes * t.per_byte;
    }
    s.busy = s.fixed > 0 || s.shared > 0;
    if (!s.busy) ++s.completed;
  }

  /// How many times as long a transfer takes beside those in progress that have a slowest link in common with it: the later of
  /// what it sends and receives.
  double sharers(const stream& s) const {
    const auto first = s.pattern * times_.size();
    double sent = 0, received = 0;
    for (const auto& other : streams_) {
      if (!other.moves() || !share_[first + other.pattern]) continue;
      sent += times_[other.pattern].sent;
      received += times_[other.pattern].received;
    }
    return std::max(sent / times_[s.pattern].sent, received / times_[s.pattern].received);
  }

  double time_to_next() {
    double next = never;
    for (auto& s : streams_) {
      if (!s.busy) continue;
      s.left = s.fixed > 0 ? s.fixed : s.shared * sharers(s);
      next = std::min(next, s.left);
    }
    return next;
  }

  void advance(double step) {
    now_ += step;
    for (auto& s : streams_) {
      if (!s.busy) continue;
      const double rest = 1 - step / s.left;
      (s.fixed > 0 ? s.fixed : s.shared) *= rest < 1e-12 ? 0 : rest;
      if (s.fixed <= 0 && s.shared <= 0) s.busy = false, ++s.completed;
    }
  }

  const placed_schedule& placed_;
  int rank_;
  communication_bytes& bytes_;
  std::vector<flow_time> times_;
  std::vector<bool> share_;  ///< a slowest link, by pattern and pattern
  std::vector<stream> streams_;
  double now_ = 0;
  double compute_ = 0;
  seconds computed_;  ///< by kernels
};

/// Ranks that may end last: under a full mask all are alike but those on the diagonal of a grid transpose; else the ends
/// and the middle of the sequence, and on a grid its corners.
std::vector<int> candidates(const placed_schedule& i) {
  const auto& grid = i.program().grid;
  const int last = i.ranks() - 1;
  std::vector<int> different;
  for (const int rank : {0, std::min(1, last), i.ranks() / 2, grid.extent(1) - 1,
                         i.ranks() - grid.extent(1), last}) {
    if (std::find(different.begin(), different.end(), rank) == different.end())
      different.push_back(rank);
  }
  return different;
}

}  // namespace

analytic_estimate estimate(const placed_schedule& i) {
  analytic_estimate slowest;
  communication_bytes bytes(i);
  for (const int rank : candidates(i)) {
    const auto e = one_rank(i, rank, bytes).run();
    if (e.time > slowest.time) slowest = e;
  }
  return slowest;
}

seconds computation(const priced_schedule& i) {
  return i.costs().longest_stream(i.program().grid.ranks() - 1);
}

}  // namespace attnsim
