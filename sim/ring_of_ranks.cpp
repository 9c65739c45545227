#include "sim/ring_of_ranks.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/private_route.hpp"
#include "sim/rank_run.hpp"
#include "sim/ring_layout.hpp"

namespace attnsim {
namespace {

constexpr std::size_t most_lanes = 4;

picoseconds moved_by(picoseconds time, picoseconds by) {
  return time == never ? never : time + by;
}

/// Whether a time of a state that is the other so much later is the other's.
bool follows(picoseconds time, picoseconds other, picoseconds by) {
  return time == moved_by(other, by);
}

/// A rank's communication on a lane, the latest.
struct arrival {
  std::uint32_t count = 0;  ///< of its arrivals on the lane
  picoseconds time = 0;
  double bytes = 0;
  bool sends = false, receives = false;  ///< the flow has not ended

  bool open() const { return sends || receives; }
};

struct ring_rank {
  rank_state state;
  std::array<picoseconds, most_streams> due{};  ///< by stream: what it waits for
  std::array<arrival, most_lanes> arrivals{};   ///< by lane
  picoseconds now = 0;
  picoseconds quiet = 0;  ///< it arrives nowhere else before

  void delay(picoseconds by);
  bool follows(const ring_rank& other, picoseconds by) const;
  /// The same of what its neighbours see of it.
  bool seems_to_follow(const ring_rank& other, picoseconds by) const;
};

/// The flows of one pattern from a rank to its neighbour.
struct ring_link {
  struct flow {
    std::uint32_t ended = 0;  ///< flows of the lane
    picoseconds end = 0;      ///< of the latest of them
    picoseconds begin = never;
    picoseconds not_before = never;  ///< the next end
    double bytes = 0;
    bool moves = false;
  };

  private_route route{1};
  std::array<flow, most_lanes> flows{};  ///< by lane

  void delay(picoseconds by);
  bool follows(const ring_link& other, picoseconds by) const;
};

void ring_rank::delay(picoseconds by) {
  for (auto& s : state.streams) s.started += by;
  state.kernel.delay(by);
  state.end += by;
  for (auto& t : due) t = moved_by(t, by);
  for (auto& a : arrivals) a.time += by;
  now += by;
  quiet = moved_by(quiet, by);
}

bool ring_rank::follows(const ring_rank& other, picoseconds by) const {
  if (now != other.now + by || state.end != other.state.end + by) return false;
  for (std::size_t s = 0; s < due.size(); ++s) {
    const auto &a = state.streams[s], &b = other.state.streams[s];
    if (a.completed != b.completed || a.busy != b.busy || a.flows_pending != b.flows_pending)
      return false;
    if (a.busy && a.started != b.started + by) return false;
    if (!attnsim::follows(due[s], other.due[s], by)) return false;
  }
  return seems_to_follow(other, by) && state.communicating == other.state.communicating &&
         state.kernel.follows(other.state.kernel, by);
}

bool ring_rank::seems_to_follow(const ring_rank& other, picoseconds by) const {
  if (!attnsim::follows(quiet, other.quiet, by)) return false;
  for (std::size_t l = 0; l < arrivals.size(); ++l) {
    const auto &a = arrivals[l], &b = other.arrivals[l];
    if (a.count != b.count || a.sends != b.sends || a.receives != b.receives) return false;
    if (a.open() && (a.time != b.time + by || a.bytes != b.bytes)) return false;
  }
  return true;
}

void ring_link::delay(picoseconds by) {
  route.delay(by);
  for (auto& f : flows) {
    f.end += by;
    f.begin = moved_by(f.begin, by);
    f.not_before = moved_by(f.not_before, by);
  }
}

bool ring_link::follows(const ring_link& other, picoseconds by) const {
  for (std::size_t l = 0; l < flows.size(); ++l) {
    const auto &a = flows[l], &b = other.flows[l];
    if (a.ended != b.ended || a.moves != b.moves) return false;
    if (a.ended > 0 && a.end != b.end + by) return false;
    if (!attnsim::follows(a.begin, b.begin, by)) return false;
    if (!attnsim::follows(a.not_before, b.not_before, by)) return false;
    if ((a.moves || a.begin != never) && a.bytes != b.bytes) return false;
  }
  return route.follows(other.route, by);
}

/// Consecutive ranks and what they send on, as many as a period of the ring.
struct cell {
  std::vector<ring_rank> ranks;
  std::vector<std::vector<ring_link>> links;  ///< by pattern, rank

  void delay(picoseconds by) {
    for (auto& r : ranks) r.delay(by);
    for (auto& of_pattern : links) {
      for (auto& l : of_pattern) l.delay(by);
    }
  }
  picoseconds clock() const { return ranks.front().now; }
  bool follows(const cell& other) const {
    const auto by = clock() - other.clock();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (!ranks[r].follows(other.ranks[r], by)) return false;
    }
    for (std::size_t p = 0; p < links.size(); ++p) {
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (!links[p][r].follows(other.links[p][r], by)) return false;
      }
    }
    return true;
  }
};

/// Cells that are alike, each a `stride` later than the one before. `state` is the first's.
struct row_of_cells {
  int first = 0;
  int count = 1;
  picoseconds stride = 0;
  cell state;

  /// Without its first `n` cells.
  row_of_cells from(int n) const {
    row_of_cells rest{first + n, count - n, count - n > 1 ? stride : 0, state};
    rest.state.delay(n * stride);
    return rest;
  }
  void cut_to(int n) {
    count = n;
    if (n == 1) stride = 0;
  }
};

/// A neighbouring cell as seen from one: its state, and by how much its times are to be moved.
struct neighbour {
  const cell* state;
  picoseconds by;
};

class ring_run {
 public:
  ring_run(const placed_schedule& i, const simulation_options& options,
           const stream_programs& programs, ring_layout ring)
      : placed_(i),
        options_(options),
        ring_(std::move(ring)),
        programs_(programs),
        rules_{i, programs_, {}},
        compute_(static_cast<std::size_t>(ring_.ranks)),
        wanted_(static_cast<std::size_t>(ring_.ranks) * i.program().program.size()) {
    for (const auto& of_pattern : ring_.hops) {
      auto& least = lookaheads_.emplace_back();
      for (const auto& hop : of_pattern) least.push_back(lookahead_of(hop));
    }
    for (const auto& op : programs_.streams.front()) {
      const bool varies = op.kernel && !i.same_on_all_ranks();
      changes_.push_back(varies ? variant_changes(i, op.operation) : std::vector<int>());
    }
    for (int c = 0; c < ring_.cells(); ++c) rows_.push_back({.first = c, .state = first_state(c)});
    join();
  }

  /// False where the schedule cannot progress.
  bool run() {
    split();
    for (auto& row : rows_) start(row);
    while (done_ < wanted_) {
      progressed_ = false;
      raise_ceiling();
      split();
      for (std::size_t n = 0; n < rows_.size(); ++n) move_links(n);
      for (std::size_t n = 0; n < rows_.size(); ++n) move_ranks(n);
      if (!progressed_) return false;
      join();
      if (options_.progress) options_.progress(done_, wanted_);
    }
    return true;
  }

  /// Keeps the intervals of this rank.
  void watch(int rank) { watched_ = rank; }

  timeline result();

 private:
  struct lookahead {
    std::vector<picoseconds> latency, transfer;  ///< by lane, the least
  };

  lookahead lookahead_of(const ring_hop& hop) const {
    lookahead least;
    for (const auto& sizes : ring_.sizes) {
      picoseconds latency = never, transfer = never;
      for (const double bytes : sizes) {
        latency = std::min(latency, hop.least_latency(bytes));
        transfer = std::min(transfer, hop.least_transfer(bytes));
      }
      least.latency.push_back(latency);
      least.transfer.push_back(transfer);
    }
    return least;
  }

  cell first_state(int number) const {
    cell c;
    c.ranks.resize(static_cast<std::size_t>(ring_.period));
    for (auto& r : c.ranks) r.due.fill(never);
    for (const auto& hops : ring_.hops) {
      auto& links = c.links.emplace_back();
      for (int i = 0; i < ring_.period; ++i) {
        const auto& hop = hops[static_cast<std::size_t>(number * ring_.period + i)];
        links.emplace_back().route = private_route(hop.rate);
        links.back().route.limit(hop.rate_limit);
      }
    }
    return c;
  }

  // --- Rows -------------------------------------------------------------------------------------

  /// Joins rows that go on one from the other.
  void join() {
    std::vector<row_of_cells> joined;
    for (auto& row : rows_) {
      if (joined.empty() || !goes_on(joined.back(), row)) {
        joined.push_back(std::move(row));
        continue;
      }
      auto& last = joined.back();
      if (last.count == 1) last.stride = row.state.clock() - last.state.clock();
      last.count += row.count;
    }
    rows_.swap(joined);
  }

  bool goes_on(const row_of_cells& a, const row_of_cells& b) const {
    const auto kind = [&](const row_of_cells& r) {
      return ring_.kind_of_cell[static_cast<std::size_t>(r.first)];
    };
    if (kind(a) != kind(b)) return false;
    const auto by = b.state.clock() - a.state.clock();
    if (a.count > 1 && by != a.count * a.stride) return false;
    if (b.count > 1 && b.stride != (a.count > 1 ? a.stride : by)) return false;
    return b.state.follows(a.state);
  }

  /// Until all cells of a row start kernels that are alike and have neighbours that are alike to them: where the row's own
  /// neighbours do not go on as it does, its ends are rows by themselves.
  void split() {
    std::vector<row_of_cells> all;
    for (auto& row : rows_) {
      const auto changes = changes_in(row);
      auto rest = std::move(row);
      for (const int cell : changes) {
        auto after = rest.from(cell - rest.first);
        rest.cut_to(cell - rest.first);
        all.push_back(std::move(rest));
        rest = std::move(after);
      }
      all.push_back(std::move(rest));
    }
    rows_.clear();
    for (std::size_t n = 0; n < all.size(); ++n) {
      const auto& before = all[(n + all.size() - 1) % all.size()];
      const auto& after = all[(n + 1) % all.size()];
      cuts_.emplace_back(all[n].count > 1 && !precedes_alike(before, all[n]),
                         all[n].count > 1 && !follows_alike(after, all[n]));
    }
    for (std::size_t n = 0; n < all.size(); ++n) part(std::move(all[n]), cuts_[n]);
    cuts_.clear();
  }

  /// Whether the cell before a row is to its first as that is to its second.
  bool precedes_alike(const row_of_cells& before, const row_of_cells& row) const {
    const auto place = static_cast<std::size_t>(ring_.period - 1);
    const auto by = -row.stride - (before.count - 1) * before.stride;
    return sends_alike(before.state, before.first + before.count - 1, row, place, by, +1);
  }

  /// Whether the cell after a row is to its last as that is to the last but one.
  bool follows_alike(const row_of_cells& after, const row_of_cells& row) const {
    return sends_alike(after.state, after.first, row, 0, row.count * row.stride, -1);
  }

  /// Whether the rank at a place of a cell, and what it sends in a direction, are those of a row `by` later.
  bool sends_alike(const cell& c, int number, const row_of_cells& row, std::size_t place,
                   picoseconds by, int direction) const {
    if (!c.ranks[place].seems_to_follow(row.state.ranks[place], by)) return false;
    for (std::size_t p = 0; p < ring_.direction.size(); ++p) {
      if (ring_.direction[p] != direction) continue;
      const auto hop = [&](int cell) -> const ring_hop& {
        return ring_.hops[p][static_cast<std::size_t>(cell * ring_.period) + place];
      };
      if (!(hop(number) == hop(row.first))) return false;
      if (!c.links[p][place].follows(row.state.links[p][place], by)) return false;
    }
    return true;
  }

  /// Adds the row, with its first and its last cell by itself where it is to be cut there.
  void part(row_of_cells row, std::pair<bool, bool> cuts) {
    if (cuts.first) {
      auto rest = row.from(1);
      row.cut_to(1);
      rows_.push_back(std::move(row));
      row = std::move(rest);
    }
    if (cuts.second && row.count > 1) {
      auto last = row.from(row.count - 1);
      row.cut_to(row.count - 1);
      rows_.push_back(std::move(row));
      row = std::move(last);
    }
    rows_.push_back(std::move(row));
  }

  /// No rank goes further in a round than a few operations beyond the last one: ranks that have the time to run ahead would
  /// be in other states than those that have not.
  void raise_ceiling() {
    constexpr std::uint32_t lead = 3;
    auto last = std::numeric_limits<std::uint32_t>::max();
    for (const auto& row : rows_) {
      for (const auto& rank : row.state.ranks)
        last = std::min(last, rank.state.streams.front().completed);
    }
    ceiling_ = last + lead;
  }

  /// The cells of the row, but the first, from which on a kernel that may start in this round has another variant; and those
  /// after them where some of the ranks have it.
  std::vector<int> changes_in(const row_of_cells& row) const {
    std::vector<int> cells;
    if (row.count == 1) return cells;
    for (const auto& rank : row.state.ranks) {
      const auto first = rank.state.streams.front().completed;
      for (auto n = first; n <= ceiling_ && n < changes_.size(); ++n) {
        for (const int change : changes_[n]) {
          cells.push_back(change / ring_.period);
          if (change % ring_.period != 0) cells.push_back(change / ring_.period + 1);
        }
      }
    }
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
    std::erase_if(cells, [&](int c) { return c <= row.first || c >= row.first + row.count; });
    return cells;
  }

  neighbour before(std::size_t n) const {
    const auto& row = rows_[n];
    if (row.count > 1) return {&row.state, -row.stride};
    const auto& other = rows_[(n + rows_.size() - 1) % rows_.size()];
    return {&other.state, (other.count - 1) * other.stride};
  }

  neighbour after(std::size_t n) const {
    const auto& row = rows_[n];
    if (row.count > 1) return {&row.state, row.stride};
    return {&rows_[(n + 1) % rows_.size()].state, 0};
  }

  // --- A round ----------------------------------------------------------------------------------

  /// A rank or a link of this row or a neighbour, by its place from the row's first rank on.
  template <typename Pick>
  auto at(std::size_t n, int place, Pick pick) const {
    const int m = ring_.period;
    const auto here = place < 0 ? before(n) : place >= m ? after(n) : neighbour{&rows_[n].state, 0};
    const int inside = place < 0 ? place + m : place >= m ? place - m : place;
    const auto& found = pick(*here.state, static_cast<std::size_t>(inside));
    return std::pair<decltype(&found), picoseconds>(&found, here.by);
  }

  void move_links(std::size_t n) {
    auto& row = rows_[n];
    for (std::size_t p = 0; p < ring_.direction.size(); ++p) {
      for (int i = 0; i < ring_.period; ++i) {
        const auto rank = [](const cell& c, std::size_t r) -> const ring_rank& {
          return c.ranks[r];
        };
        const auto receiver = at(n, i + ring_.direction[p], rank);
        const auto sender = static_cast<std::size_t>(row.first * ring_.period + i);
        move_link(row.state.links[p][static_cast<std::size_t>(i)], p, sender,
                  row.state.ranks[static_cast<std::size_t>(i)], *receiver.first, receiver.second);
      }
    }
  }

  /// When the next flow of the lane begins at the earliest, if it has not begun.
  static picoseconds earliest(const ring_link::flow& f, std::size_t lane, const ring_rank& sender,
                              const ring_rank& receiver, picoseconds by, picoseconds latency) {
    const auto arrives = [&](const ring_rank& r, picoseconds moved) {
      const auto& a = r.arrivals[lane];
      return moved_by(a.count > f.ended ? a.time : r.quiet, moved);
    };
    return later(std::max({arrives(sender, 0), arrives(receiver, by), f.end}), latency);
  }

  void move_link(ring_link& link, std::size_t pattern, std::size_t sending, const ring_rank& sender,
                 const ring_rank& receiver, picoseconds by) {
    const auto& hop = ring_.hops[pattern][sending];
    const auto& least = lookaheads_[pattern][sending];
    const auto of_pattern = [&](std::size_t l) {
      return programs_.lanes[l].pattern == static_cast<int>(pattern);
    };
    const auto waits = [](const ring_link::flow& f) { return !f.moves && f.begin == never; };
    const auto earliest_of = [&](std::size_t l) {
      return earliest(link.flows[l], l, sender, receiver, by, least.latency[l]);
    };
    auto certain = never;  // no flow that has not begun yet begins before
    for (std::size_t l = 0; l < lanes(); ++l) {
      auto& f = link.flows[l];
      if (!of_pattern(l) || !waits(f)) continue;
      const auto &sent = sender.arrivals[l], &received = receiver.arrivals[l];
      if (sent.count > f.ended && received.count > f.ended) {
        f.bytes = sent.bytes;
        f.begin =
            later(std::max(sent.time, moved_by(received.time, by)), hop.least_latency(f.bytes));
      } else {
        certain = std::min(certain, earliest_of(l));
      }
    }
    while (true) {
      std::size_t first = lanes();
      for (std::size_t l = 0; l < lanes(); ++l) {
        if (of_pattern(l) && link.flows[l].begin != never &&
            (first == lanes() || link.flows[l].begin < link.flows[first].begin)) {
          first = l;
        }
      }
      const auto begin = first == lanes() ? never : link.flows[first].begin;
      const auto time = std::min(begin, link.route.next_completion());
      if (time == never || time > certain) break;
      progressed_ = true;
      if (begin == time) {
        auto& f = link.flows[first];
        link.route.start(time, first, f.bytes);
        f.moves = true;
        f.begin = never;
        continue;
      }
      ended_.clear();
      link.route.complete(time, ended_);
      for (const auto lane : ended_) {
        auto& f = link.flows[lane];
        f.moves = false;
        f.end = time;
        ++f.ended;
        certain = std::min(certain, earliest_of(lane));
      }
    }
    for (std::size_t l = 0; l < lanes(); ++l) {
      auto& f = link.flows[l];
      if (!of_pattern(l)) continue;
      constexpr picoseconds rounding = 2;
      const auto bound =
          f.moves ? link.route.next_completion() - rounding
                  : later(f.begin != never ? f.begin : earliest_of(l), least.transfer[l]);
      progressed_ = progressed_ || bound != f.not_before;
      f.not_before = bound;
    }
  }

  std::size_t lanes() const { return programs_.lanes.size(); }

  /// What a rank sees while it runs.
  struct surroundings {
    ring_run& all;
    const row_of_cells& row;
    int place;  ///< in a cell
    ring_rank& rank;

    picoseconds now() const { return rank.now; }
    void wait(std::uint32_t s, picoseconds until) { rank.due[s] = until; }
    int arrive(const stream_operation& op, std::uint32_t) {
      auto& a = rank.arrivals[static_cast<std::size_t>(op.lane)];
      a = {a.count + 1, rank.now, op.bytes * op.stretch, true, true};
      return 2;
    }
    void finished(const stream_operation& op, const stream_state& s) {
      all.done_ += static_cast<std::size_t>(row.count);
      if (rank.now > s.started) all.keep(row, place, op, s.started, rank.now);
    }
  };

  surroundings around(row_of_cells& row, int place) {
    return {*this, row, place, row.state.ranks[static_cast<std::size_t>(place)]};
  }

  /// An interval of the row's first rank at a place, where the watched rank is among the row's.
  void keep(const row_of_cells& row, int place, const stream_operation& op, picoseconds start,
            picoseconds end) {
    const int cell = watched_ / ring_.period - row.first;
    if (watched_ < 0 || watched_ % ring_.period != place || cell < 0 || cell >= row.count) return;
    const auto later = cell * row.stride;
    intervals_.push_back(
        {op.operation, seconds(to_seconds(start + later)), seconds(to_seconds(end + later))});
  }

  void start(row_of_cells& row) {
    for (int i = 0; i < ring_.period; ++i) {
      auto seen = around(row, i);
      rank_run<surroundings>(rules_, no_launches_, row.first * ring_.period + i, seen.rank.state,
                             seen)
          .start_ready();
      count_compute(row, i);
    }
  }

  /// The compute time of a rank, for all that it stands for.
  void count_compute(row_of_cells& row, int i) {
    auto& time = row.state.ranks[static_cast<std::size_t>(i)].state.compute;
    if (time == 0) return;
    const auto first = static_cast<std::size_t>(row.first * ring_.period + i);
    const auto end = first + static_cast<std::size_t>(row.count * ring_.period);
    compute_[first] += time;
    if (end < compute_.size()) compute_[end] -= time;
    time = 0;
  }

  void move_ranks(std::size_t n) {
    for (int i = 0; i < ring_.period; ++i) {
      move_rank(n, i);
      count_compute(rows_[n], i);
    }
  }

  /// The flow of a lane that the rank at this place sends or receives: whether its latest has ended and when, else before when
  /// it does not end.
  struct flow_end {
    bool known;
    picoseconds time;
  };
  flow_end end_of(std::size_t n, int i, std::size_t lane, bool received) const {
    const auto pattern = static_cast<std::size_t>(programs_.lanes[lane].pattern);
    const auto link = [&](const cell& c, std::size_t r) -> const ring_link& {
      return c.links[pattern][r];
    };
    const auto [found, by] = at(n, received ? i - ring_.direction[pattern] : i, link);
    const auto& f = found->flows[lane];
    const auto& a = rows_[n].state.ranks[static_cast<std::size_t>(i)].arrivals[lane];
    const bool known = f.ended == a.count;
    return {known, moved_by(known ? f.end : f.not_before, by)};
  }

  void move_rank(std::size_t n, int i) {
    auto& row = rows_[n];
    auto seen = around(row, i);
    auto& rank = seen.rank;
    rank_run<surroundings> run(rules_, no_launches_, row.first * ring_.period + i, rank.state,
                               seen);
    picoseconds quiet = never;
    while (true) {
      auto time = never, horizon = never;
      for (const auto due : rank.due) time = std::min(time, due);
      for (std::size_t l = 0; l < lanes(); ++l) {
        const auto& a = rank.arrivals[l];
        for (const bool received : {false, true}) {
          if (!(received ? a.receives : a.sends)) continue;
          const auto end = end_of(n, i, l, received);
          auto& first = end.known ? time : horizon;
          first = std::min(first, end.time);
        }
      }
      quiet = std::min(time, horizon);
      if (time == never || time >= horizon) break;
      if (rank.state.streams.front().completed >= ceiling_) break;
      progressed_ = true;
      rank.now = time;
      end_flows(n, i, rank, run);
      end_waits(rank, run);
      run.start_ready();
    }
    progressed_ = progressed_ || quiet != rank.quiet;
    rank.quiet = quiet;
  }

  void end_waits(ring_rank& rank, rank_run<surroundings>& run) const {
    const auto end = rank.due.begin() + rules_.streams();
    while (true) {
      const auto due = std::find(rank.due.begin(), end, rank.now);
      if (due == end) return;
      *due = never;
      run.end_wait(static_cast<std::uint32_t>(due - rank.due.begin()));
    }
  }

  void end_flows(std::size_t n, int i, ring_rank& rank, rank_run<surroundings>& run) {
    for (std::size_t l = 0; l < lanes(); ++l) {
      for (const bool received : {false, true}) {
        auto& open = received ? rank.arrivals[l].receives : rank.arrivals[l].sends;
        if (!open) continue;
        const auto end = end_of(n, i, l, received);
        if (!end.known || end.time != rank.now) continue;
        open = false;
        run.end_flow(programs_.lanes[l].stream);
      }
    }
  }

  void add_link_loads(timeline& t) const;

  const placed_schedule& placed_;
  const simulation_options& options_;
  ring_layout ring_;
  const stream_programs& programs_;
  rank_rules rules_;
  launch_list no_launches_;
  std::vector<std::vector<lookahead>> lookaheads_;  ///< by pattern, sender
  std::vector<row_of_cells> rows_;
  std::vector<std::pair<bool, bool>> cuts_;  ///< by row: its first and last cell go by themselves
  std::vector<std::vector<int>> changes_;  ///< by operation of the compute stream: variant_changes
  std::vector<picoseconds> compute_;       ///< by rank: more than of the rank a period before
  std::uint32_t ceiling_ = 0;              ///< operations of the compute stream
  std::size_t done_ = 0, wanted_ = 0;
  std::vector<flow_tag> ended_;
  bool progressed_ = false;
  int watched_ = -1;                 ///< a rank; -1: none
  std::vector<interval> intervals_;  ///< its
};

timeline ring_run::result() {
  timeline t;
  const auto m = static_cast<std::size_t>(ring_.period);
  for (std::size_t r = m; r < compute_.size(); ++r) compute_[r] += compute_[r - m];
  double bytes = 0;
  for (const auto& stream : programs_.streams) {
    for (const auto& op : stream) bytes += op.lane < 0 ? 0 : op.bytes;
  }
  for (const auto& row : rows_) {
    for (int c = 0; c < row.count; ++c) {
      for (const auto& rank : row.state.ranks) {
        const auto number = t.ranks.size();
        t.ranks.push_back({.rank = static_cast<int>(number),
                           .end = seconds(to_seconds(rank.state.end + c * row.stride)),
                           .compute = seconds(to_seconds(compute_[number])),
                           .intervals = {},
                           .bytes_sent = bytes});
      }
    }
  }
  if (watched_ >= 0) t.ranks[static_cast<std::size_t>(watched_)].intervals = intervals_;
  t.class_of.resize(t.ranks.size());
  std::iota(t.class_of.begin(), t.class_of.end(), 0);
  add_link_loads(t);
  return t;
}

/// All flows have ended, so that a link has carried what the program says.
void ring_run::add_link_loads(timeline& t) const {
  std::vector<double> moved(ring_.direction.size());
  for (const auto& stream : programs_.streams) {
    for (const auto& op : stream) {
      if (op.lane < 0) continue;
      const auto pattern = programs_.lanes[static_cast<std::size_t>(op.lane)].pattern;
      moved[static_cast<std::size_t>(pattern)] += op.bytes * op.stretch;
    }
  }
  const auto links = placed_.on().network.links();
  std::vector<link_load> by_link(links.size());
  const auto& communication = placed_.communication();
  const double duration = t.duration().value();
  for (int p = 0; p < communication.patterns(); ++p) {
    for (int f = 0; f < communication.flows(p); ++f) {
      for (const auto& use : communication.form(p, f).uses) {
        auto& load = by_link[use.link];
        load.link = use.link;
        load.bytes = use.weight * moved[static_cast<std::size_t>(p)];
        const double possible = links[use.link].capacity.value() * duration;
        load.utilisation = possible > 0 ? load.bytes / possible : 0;
      }
    }
  }
  t.load_of.assign(links.size(), -1);
  for (link_id l = 0; l < by_link.size(); ++l) {
    if (by_link[l].bytes > 0) t.links.push_back(by_link[l]);
  }
  std::stable_sort(t.links.begin(), t.links.end(),
                   [](const auto& a, const auto& b) { return a.utilisation > b.utilisation; });
  for (std::size_t place = 0; place < t.links.size(); ++place)
    t.load_of[t.links[place].link] = static_cast<int>(place);
}

}  // namespace

std::optional<timeline> simulate_ring(const placed_schedule& i, const simulation_options& options) {
  const bool hosted = options.launches && !i.on().host.name.empty();
  const bool launched = hosted || i.chosen().start != run_start::in_sequence;
  if (launched || options.record || options.record_links) return {};
  const stream_programs programs(i);
  if (programs.lanes.size() > most_lanes) return {};
  auto ring = find_ring(i, programs);
  if (!ring) return {};
  ring_run run(i, options, programs, *ring);
  if (!run.run()) return {};
  auto result = run.result();
  if (!options.record_slowest) return result;
  ring_run again(i, options, programs, std::move(*ring));
  again.watch(result.slowest().rank);
  again.run();
  return again.result();
}

}  // namespace attnsim
