#include "sim/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "model/cost/analytic.hpp"
#include "model/cost/host_time.hpp"
#include "model/error.hpp"
#include "sim/last_messages.hpp"
#include "sim/rank_run.hpp"
#include "sim/ring_of_ranks.hpp"
#include "sim/stream_programs.hpp"
#include "sim/symmetry.hpp"
#include "sim/traffic.hpp"

namespace attnsim {
namespace {

/// By rank class; of a framework's host, unless the run starts idle.
std::vector<launch_list> launches_of(const placed_schedule& i, const symmetry& s,
                                     const simulation_options& options) {
  std::vector<launch_list> all(s.rank_of_class.size());
  const bool idle = i.chosen().start != run_start::in_sequence;
  if (!idle && !options.launches) return all;
  for (std::size_t r = 0; r < all.size(); ++r) {
    for (const auto time :
         idle ? idle_launch_times(i, s.rank_of_class[r]) : launch_times(i, s.rank_of_class[r]))
      all[r].push_back(to_picoseconds(time.value()));
  }
  return all;
}

/// The operations at whose end the host of a framework goes on.
std::vector<std::uint32_t> waits_of(const placed_schedule& i) {
  std::vector<std::uint32_t> waits;
  for (std::uint32_t op = 0; op < i.program().program.size(); ++op) {
    if (i.chosen().waits(i.program().program[op].kind)) waits.push_back(op);
  }
  return waits;
}

class simulation {
 public:
  /// References are kept. `programs` may be the first part of the schedule's.
  simulation(const placed_schedule& i, const simulation_options& options, const symmetry& alike,
             const stream_programs& programs)
      : placed_(i),
        options_(options),
        symmetry_(alike),
        programs_(programs),
        traffic_(i, symmetry_, programs_, options.record_links),
        ranks_(symmetry_.rank_of_class.size()),
        intervals_(ranks_.size()),
        launched_(launches_of(i, symmetry_, options)),
        rules_{i, programs_,
               launched_.front().empty() ? std::vector<std::uint32_t>() : waits_of(i)} {
    events_.resize(ranks_.size() * programs_.streams.size());
    ends_.assign(programs_.streams.size(), std::vector<picoseconds>(ranks_.size()));
  }

  timeline run() {
    run_events();
    return result();
  }

  /// With what follows the programs; nothing where that can't be told from what they have done.
  std::optional<timeline> run_before(const last_messages& rest) {
    run_events();
    const last_messages::start reached{std::move(ends_), traffic_end_};
    const auto before = done_before();
    auto done = before;
    if (!rest.run(reached, done)) return {};
    if (options_.record_slowest) {
      const auto slowest = std::max_element(
          done.begin(), done.end(), [](const auto& a, const auto& b) { return a.end < b.end; });
      const auto r = static_cast<std::size_t>(slowest - done.begin());
      rest.record(reached, before, r, intervals_[r]);
      std::stable_sort(intervals_[r].begin(), intervals_[r].end(),
                       [](const auto& a, const auto& b) { return a.end < b.end; });
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].compute = done[r].compute;
      ranks_[r].end = done[r].end;
      ranks_[r].bytes_sent = done[r].bytes_sent;
    }
    for (const auto& r : ranks_) now_ = std::max(now_, r.end);
    carried_ = rest.bytes_carried();
    return result();
  }

 private:
  std::vector<last_messages::done> done_before() const {
    std::vector<last_messages::done> all;
    for (const auto& r : ranks_) all.push_back({r.compute, r.end, r.bytes_sent});
    return all;
  }

  void run_events() {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) touched_.push_back(r);
    start_ready();
    while (true) {
      const auto next =
          std::min(events_.empty() ? never : events_.top_key().first, traffic_.next());
      if (next == never) break;
      now_ = next;
      tell_progress();
      complete_flows();
      while (!events_.empty() && events_.top_key().first == now_) end_wait(events_.top());
      start_ready();
    }
    require_in_range();
    require_finished();
  }

  std::uint32_t streams_of_rank() const { return rules_.streams; }
  std::uint32_t event_of(std::uint32_t r, std::uint32_t stream) const {
    return r * streams_of_rank() + stream;
  }
  const stream_operation& current(std::uint32_t r, std::uint32_t s) const {
    return programs_.streams[s][ranks_[r].streams[s].completed];
  }
  std::size_t stream_number(std::uint32_t r, const stream_state& s) const {
    return static_cast<std::size_t>(&s - ranks_[r].streams.data());
  }
  int rank_of(std::uint32_t r) const { return symmetry_.rank_of_class[r]; }

  /// What a rank class sees of the loop.
  struct surroundings {
    simulation& all;
    std::uint32_t r;

    picoseconds now() const { return all.now_; }
    seconds local_time(const stream_operation& op) const {
      return all.placed_.local_time(op.operation, all.rank_of(r));
    }
    double parts(const stream_operation& op) const {
      return all.placed_.costs().parts(op.operation, all.rank_of(r));
    }
    void wait(std::uint32_t s, picoseconds until) {
      all.events_.set(all.event_of(r, s), {until, s});
    }
    int arrive(const stream_operation& op, std::uint32_t s) { return all.arrive(r, op, s); }
    void finished(const stream_operation& op, const stream_state& s) { all.finished(r, op, s); }
  };

  template <typename Action>
  void with_rank(std::uint32_t r, Action action) {
    surroundings around{*this, r};
    action(rank_run<surroundings>(rules_, launched_[r], ranks_[r], around));
  }

  /// Starts what can start, until nothing of zero duration is left.
  void start_ready() {
    while (!touched_.empty()) {
      if (touched_.size() > 1) {
        std::sort(touched_.begin(), touched_.end());
        touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
      }
      ready_.swap(touched_);
      touched_.clear();
      for (const auto r : ready_) with_rank(r, [](auto&& rank) { rank.start_ready(); });
      if (traffic_.next() == now_) complete_flows();
    }
  }

  int arrive(std::uint32_t r, const stream_operation& op, std::uint32_t s) {
    const bool first = ranks_[r].streams[s].round == 0;
    const double bytes = op.bytes * op.stretch;
    const traffic::message m{bytes / (op.lanes * op.rounds),
                             first ? std::optional(bytes) : std::nullopt};
    bool sends = false;
    int waits = 0;
    for (int l = op.lane; l < op.lane + op.lanes; ++l) {
      const auto ends = traffic_.of(l, r);
      for (const auto flow : {ends.sent, ends.received})
        waits += flow != traffic::no_flow && traffic_.arrive(now_, flow, r, m);
      sends = sends || ends.sent != traffic::no_flow;
    }
    if (sends && first) ranks_[r].bytes_sent += op.bytes;
    return waits;
  }

  void complete_flows() {
    for (const auto tag : traffic_.advance(now_)) {
      const auto f = static_cast<traffic::flow_number>(tag);
      const auto s = traffic_.stream_of(f);
      traffic_end_ = now_;
      for (const auto r : traffic_.waiting(f)) with_rank(r, [&](auto&& rank) { rank.end_flow(s); });
    }
  }

  void end_wait(std::uint32_t event) {
    events_.erase(event);
    with_rank(event / streams_of_rank(),
              [&](auto&& rank) { rank.end_wait(event % streams_of_rank()); });
  }

  void finished(std::uint32_t r, const stream_operation& op, const stream_state& s) {
    if ((options_.record || options_.record_slowest) && now_ > s.started) {
      intervals_[r].push_back(
          {op.operation, seconds(to_seconds(s.started)), seconds(to_seconds(now_))});
    }
    ends_[stream_number(r, s)][r] = now_;
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
        if (ranks_[r].streams[s].completed < programs_.streams[s].size())
          waiting += describe_wait(r, s);
      }
    }
    if (waiting.empty()) return;
    throw std::logic_error(fmt::format("{} cannot progress:{}", placed_.program().name, waiting));
  }

  std::string describe_wait(std::uint32_t r, std::uint32_t s) const {
    const auto& op = current(r, s);
    const auto kind = name_of(placed_.program().program[op.operation].kind);
    if (ranks_[r].streams[s].busy) {
      return fmt::format(" rank {} waits in operation {} ({}) for its peers;", rank_of(r),
                         op.operation, kind);
    }
    std::string needs;
    for (std::uint32_t other = 0; other < streams_of_rank(); ++other) {
      if (ranks_[r].streams[other].completed < op.needs[other]) {
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
    t.ranks.reserve(ranks_.size());
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      auto& rank = ranks_[r];
      t.ranks.push_back({.rank = rank_of(r),
                         .end = seconds(to_seconds(rank.end)),
                         .compute = seconds(to_seconds(rank.compute)),
                         .intervals = std::move(intervals_[r]),
                         .bytes_sent = rank.bytes_sent});
    }
    if (!options_.record) keep_of_slowest(t);
    add_link_loads(t);
    return t;
  }

  static void keep_of_slowest(timeline& t) {
    const auto* slowest = &t.slowest();
    for (auto& rank : t.ranks) {
      if (&rank != slowest) rank.intervals = {};
    }
  }

  void add_link_loads(timeline& t) {
    const double duration = t.duration().value();
    auto bytes = traffic_.bytes_carried(now_);
    for (std::size_t l = 0; l < carried_.size(); ++l) bytes[l] += carried_[l];
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
    t.links.reserve(classes.size());
    t.load_of.reserve(symmetry_.link_class.size());
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

  const placed_schedule& placed_;
  simulation_options options_;
  const symmetry& symmetry_;
  const stream_programs& programs_;
  traffic traffic_;
  std::vector<rank_state> ranks_;                 ///< by rank class
  std::vector<std::vector<interval>> intervals_;  ///< by rank class
  std::vector<launch_list> launched_;             ///< by rank class, operation; empty: long before
  rank_rules rules_;
  /// By rank class, stream. What is due at one time has an order, that of the streams.
  index_heap<std::pair<picoseconds, std::uint32_t>> events_;
  picoseconds now_ = 0;
  std::vector<std::vector<picoseconds>> ends_;  ///< by stream, rank class: of its latest operation
  picoseconds traffic_end_ = 0;                 ///< of the latest flow
  std::vector<double> carried_;                 ///< by link class: besides the traffic's
  std::size_t done_ = 0, told_ = 0;             ///< operations
  std::vector<std::uint32_t> touched_, ready_;
};

/// What links differ in makes few classes then (symmetry.hpp).
bool compute_alike(const placed_schedule& i) {
  if (!i.same_on_all_ranks()) return false;
  for (int rank = 1; rank < i.ranks(); ++rank) {
    if (i.speed_of(rank) != i.speed_of(0)) return false;
  }
  return true;
}

/// Nobody asks for each event, and no host launches one after the other.
bool may_skip_events(const placed_schedule& i, const simulation_options& options) {
  const bool hosted = options.launches && !i.on().host.name.empty();
  return options.merge_symmetric && !options.record && !options.record_links && !hosted &&
         i.chosen().start == run_start::in_sequence;
}

}  // namespace

timeline simulate(const placed_schedule& i, const simulation_options& options) {
  constexpr int few = 32;  // of more ranks rounds take less than events do
  if (options.merge_symmetric && i.ranks() > few && !compute_alike(i)) {
    if (auto ring = simulate_ring(i, options)) return *std::move(ring);
  }
  const auto alike = find_symmetry(i, options.merge_symmetric);
  const stream_programs programs(i);
  if (may_skip_events(i, options)) {
    if (const auto rest = last_messages::find(i, alike, programs)) {
      if (auto found = simulation(i, options, alike, rest->before()).run_before(*rest))
        return *std::move(found);
    }
  }
  return simulation(i, options, alike, programs).run();
}

}  // namespace attnsim
