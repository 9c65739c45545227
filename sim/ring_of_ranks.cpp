#include "sim/ring_of_ranks.hpp"

#include <algorithm>
#include <array>
#include <iterator>
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
  picoseconds next = 0;  ///< it does not arrive again before
  double bytes = 0;
  bool sends = false, receives = false;  ///< the flow has not ended

  bool open() const { return sends || receives; }
  /// When, or before when not, it arrives for the flow after so many.
  picoseconds after(std::uint32_t flows) const { return count > flows ? time : next; }
};

/// How many there are of what each rank has most_streams and most_lanes of.
struct in_use {
  std::size_t streams = 0, lanes = 0;
};

struct ring_rank {
  rank_state state;
  std::array<picoseconds, most_streams> due{};  ///< by stream: what it waits for
  std::array<arrival, most_lanes> arrivals{};   ///< by lane
  picoseconds now = 0;

  void delay(picoseconds by);
  bool follows(const ring_rank& other, picoseconds by, const in_use&) const;
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

    bool begins() const { return moves || begin != never; }  ///< and has not ended
  };

  private_route route{1};
  std::array<flow, most_lanes> flows{};  ///< by lane

  void delay(picoseconds by);
  bool follows(const ring_link& other, picoseconds by, const in_use&) const;
};

void ring_rank::delay(picoseconds by) {
  for (auto& s : state.streams) s.started += by;
  state.kernel.delay(by);
  state.end += by;
  for (auto& t : due) t = moved_by(t, by);
  for (auto& a : arrivals) {
    a.time += by;
    a.next = moved_by(a.next, by);
  }
  now += by;
}

bool ring_rank::follows(const ring_rank& other, picoseconds by, const in_use& n) const {
  if (now != other.now + by || state.end != other.state.end + by) return false;
  for (std::size_t s = 0; s < n.streams; ++s) {
    const auto &a = state.streams[s], &b = other.state.streams[s];
    if (a.completed != b.completed || a.busy != b.busy || a.flows_pending != b.flows_pending)
      return false;
    if (a.busy && a.started != b.started + by) return false;
    if (!attnsim::follows(due[s], other.due[s], by)) return false;
  }
  for (std::size_t l = 0; l < n.lanes; ++l) {
    const auto &a = arrivals[l], &b = other.arrivals[l];
    if (!attnsim::follows(a.next, b.next, by)) return false;
    if (a.count != b.count || a.sends != b.sends || a.receives != b.receives) return false;
    if (a.open() && (a.time != b.time + by || a.bytes != b.bytes)) return false;
  }
  return state.communicating == other.state.communicating &&
         state.kernel.follows(other.state.kernel, by);
}

void ring_link::delay(picoseconds by) {
  route.delay(by);
  for (auto& f : flows) {
    f.end += by;
    f.begin = moved_by(f.begin, by);
    f.not_before = moved_by(f.not_before, by);
  }
}

bool ring_link::follows(const ring_link& other, picoseconds by, const in_use& n) const {
  for (std::size_t l = 0; l < n.lanes; ++l) {
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
  bool follows(const cell& other, const in_use& n) const {
    const auto by = clock() - other.clock();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (!ranks[r].follows(other.ranks[r], by, n)) return false;
    }
    for (std::size_t p = 0; p < links.size(); ++p) {
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (!links[p][r].follows(other.links[p][r], by, n)) return false;
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

  picoseconds clock() const { return state.clock(); }
  picoseconds last() const { return (count - 1) * stride; }  ///< of its cells, how much later
  void delay(picoseconds by) { state.delay(by); }
  /// Without its first `n` cells.
  row_of_cells from(int n) const {
    row_of_cells rest{first + n, count - n, count - n > 1 ? stride : 0, state};
    rest.delay(n * stride);
    return rest;
  }
  void cut_to(int n) {
    count = n;
    if (n == 1) stride = 0;
  }
};

/// The same of blocks of cells, as under one leaf switch. `rows` are the first's.
struct row_of_blocks {
  int first = 0;
  int count = 1;
  picoseconds stride = 0;
  int cells = 0;  ///< of a block
  std::vector<row_of_cells> rows;

  picoseconds clock() const { return rows.front().clock(); }
  picoseconds last() const { return (count - 1) * stride; }
  row_of_blocks from(int n) const {
    row_of_blocks rest{first + n, count - n, count - n > 1 ? stride : 0, cells, rows};
    for (auto& row : rest.rows) {
      row.first += n * cells;
      row.delay(n * stride);
    }
    return rest;
  }
  void cut_to(int n) {
    count = n;
    if (n == 1) stride = 0;
  }
};

/// Appends a row cut before each of these of its cells or blocks.
template <typename Row>
void append_cut(std::vector<Row>& all, Row row, const std::vector<int>& before) {
  for (const int part : before) {
    auto after = row.from(part - row.first);
    row.cut_to(part - row.first);
    all.push_back(std::move(row));
    row = std::move(after);
  }
  all.push_back(std::move(row));
}

/// Which ends of a row go by themselves.
using cut_ends = std::pair<bool, bool>;

/// The parts before which a row is cut then.
template <typename Row>
std::vector<int> without_ends(const Row& row, cut_ends ends) {
  std::vector<int> before;
  if (ends.first) before.push_back(row.first + 1);
  if (ends.second && row.count > 1 + ends.first) before.push_back(row.first + row.count - 1);
  return before;
}

/// Cuts rows before these parts of each, by its number; most rows stay whole, in their place.
template <typename Row, typename Before>
void cut(std::vector<Row>& rows, Before before) {
  std::vector<Row> all;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const std::vector<int> parts = before(n);
    if (all.empty() && parts.empty()) continue;
    if (all.empty()) {
      const auto whole = rows.begin() + static_cast<std::ptrdiff_t>(n);
      all.assign(std::make_move_iterator(rows.begin()), std::make_move_iterator(whole));
    }
    append_cut(all, std::move(rows[n]), parts);
  }
  if (!all.empty()) rows.swap(all);
}

/// Ascending, each once, of those inside the row.
template <typename Row>
std::vector<int> inside(const Row& row, std::vector<int> parts) {
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  std::erase_if(parts, [&](int p) { return p <= row.first || p >= row.first + row.count; });
  return parts;
}

/// A neighbouring cell as seen from one: its row, its number, and by how much the row's times are to be moved.
struct neighbour {
  const row_of_cells* row;
  int number;
  picoseconds by;
};

struct row_place {
  std::size_t block, row;
};

/// Of an operation on a rank, at full speed.
struct local_cost {
  seconds time;
  double parts = 0;
};

class ring_run {
 public:
  ring_run(const placed_schedule& i, const simulation_options& options,
           const stream_programs& programs, ring_layout ring)
      : placed_(i),
        options_(options),
        ring_(std::move(ring)),
        programs_(programs),
        in_use_{programs.streams.size(), programs.lanes.size()},
        rules_{i, programs_, {}},
        compute_(static_cast<std::size_t>((ring_.blocks() + 1) * (ring_.block + 1) * ring_.period)),
        wanted_(static_cast<std::size_t>(ring_.ranks) * i.program().program.size()) {
    for (const auto& of_pattern : ring_.hops) {
      auto& least = lookaheads_.emplace_back();
      for (const auto& hop : of_pattern) least.push_back(lookahead_of(hop));
    }
    lanes_of_.resize(ring_.hops.size());
    for (std::size_t l = 0; l < in_use_.lanes; ++l)
      lanes_of_[static_cast<std::size_t>(programs_.lanes[l].pattern)].push_back(l);
    for (const auto& op : programs_.streams.front()) {
      const bool varies = op.kernel && !i.same_on_all_ranks();
      changes_.push_back(varies ? variant_changes(i, op.operation) : std::vector<int>());
      std::sort(changes_.back().begin(), changes_.back().end());
      auto& costs = costs_.emplace_back();
      costs.push_back(cost_of(op, 0));
      for (const int rank : changes_.back()) costs.push_back(cost_of(op, rank));
    }
    for (int b = 0; b < ring_.blocks(); ++b) {
      auto& block =
          blocks_.emplace_back(row_of_blocks{.first = b, .cells = ring_.block, .rows = {}});
      for (int c = b * ring_.block; c < (b + 1) * ring_.block; ++c)
        block.rows.push_back({.first = c, .state = first_state(c)});
    }
    join();
  }

  /// False where the schedule cannot progress.
  bool run() {
    split();
    for (auto& block : blocks_) {
      for (auto& row : block.rows) start(block, row);
    }
    while (done_ < wanted_) {
      progressed_ = false;
      raise_ceiling();
      split();
      each_row([&](row_place p) { move_links(view(p)); });
      each_row([&](row_place p) { move_ranks(view(p)); });
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

  template <typename Do>
  void each_row(Do what) const {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      for (std::size_t n = 0; n < blocks_[b].rows.size(); ++n) what(row_place{b, n});
    }
  }
  const row_of_cells& row_at(row_place p) const { return blocks_[p.block].rows[p.row]; }
  row_of_cells& row_at(row_place p) { return blocks_[p.block].rows[p.row]; }

  /// Joins rows that go on one from the other: of cells in a block, then of blocks.
  void join() {
    for (auto& block : blocks_) join(block.rows);
    join(blocks_);
  }

  template <typename Row>
  void join(std::vector<Row>& rows) const {
    std::size_t last = 0;
    for (std::size_t n = 1; n < rows.size(); ++n) {
      auto& row = rows[last];
      if (goes_on(row, rows[n])) {
        if (row.count == 1) row.stride = rows[n].clock() - row.clock();
        row.count += rows[n].count;
      } else if (++last < n) {
        rows[last] = std::move(rows[n]);
      }
    }
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(last) + 1, rows.end());
  }

  template <typename Row>
  bool goes_on(const Row& a, const Row& b) const {
    const auto by = b.clock() - a.clock();
    if (a.count > 1 && by != a.count * a.stride) return false;
    if (b.count > 1 && b.stride != (a.count > 1 ? a.stride : by)) return false;
    return follows(b, a);
  }

  bool follows(const row_of_cells& b, const row_of_cells& a) const {
    const auto kind = [&](const row_of_cells& r) {
      return ring_.kind_of_cell[static_cast<std::size_t>(r.first)];
    };
    return kind(a) == kind(b) && b.state.follows(a.state, in_use_);
  }

  /// All of a block's rows, as much later.
  bool follows(const row_of_blocks& b, const row_of_blocks& a) const {
    const auto by = b.clock() - a.clock();
    return std::equal(b.rows.begin(), b.rows.end(), a.rows.begin(), a.rows.end(),
                      [&](const row_of_cells& one, const row_of_cells& other) {
                        return one.count == other.count && one.stride == other.stride &&
                               one.clock() == other.clock() + by && follows(one, other);
                      });
  }

  /// Until all of a row start kernels that are alike and have neighbours that are alike to them: where the row's own neighbours
  /// do not go on as it does, its ends are rows by themselves.
  void split() {
    split_blocks();
    for (auto& block : blocks_)
      cut(block.rows, [&](std::size_t n) { return changed_cells(block.rows[n]); });
    each_row([&](row_place p) {
      const auto& row = row_at(p);
      cuts_.push_back(row.count == 1 ? cut_ends(false, false)
                                     : ends_to_cut(row, row, row.last(), row.stride, before_row(p),
                                                   after_row(p)));
    });
    std::size_t first = 0;
    for (auto& block : blocks_) {
      const auto rows = block.rows.size();
      cut(block.rows, [&](std::size_t n) { return without_ends(block.rows[n], cuts_[first + n]); });
      first += rows;
    }
    cuts_.clear();
  }

  void split_blocks() {
    cut(blocks_, [&](std::size_t b) { return changed_blocks(blocks_[b]); });
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const auto& block = blocks_[b];
      const auto& back = block.rows.back();
      cuts_.push_back(block.count == 1
                          ? cut_ends(false, false)
                          : ends_to_cut(block.rows.front(), back, block.last() + back.last(),
                                        block.stride - back.last(), before_block(b),
                                        after_block(b)));
    }
    cut(blocks_, [&](std::size_t b) { return without_ends(blocks_[b], cuts_[b]); });
    cuts_.clear();
  }

  /// The ends that see another cell beyond them than those inside do: inside, the row `first` comes so much `later` than `last`.
  /// The last cell is so much `further` on than the first of its row.
  cut_ends ends_to_cut(const row_of_cells& first, const row_of_cells& last, picoseconds further,
                       picoseconds later, const neighbour& before, const neighbour& after) const {
    const auto ends = [&](const row_of_cells& own, const neighbour& beyond, const neighbour& inside,
                          int outward) { return !is_alike(own, beyond, inside, outward); };
    return {ends(first, before, {&last, last.first, -later}, -1),
            ends(last, {after.row, after.number, after.by - further}, {&first, first.first, later},
                 +1)};
  }

  /// Whether an end of a row, in this direction, cannot tell the cell `a` beyond it from `b`.
  bool is_alike(const row_of_cells& own, const neighbour& a, const neighbour& b,
                int outward) const {
    const auto end = static_cast<std::size_t>(outward > 0 ? ring_.period - 1 : 0);
    const auto other = static_cast<std::size_t>(ring_.period - 1) - end;
    const auto &of_a = a.row->state, &of_b = b.row->state;
    for (std::size_t p = 0; p < ring_.direction.size(); ++p) {
      const bool sends = ring_.direction[p] == outward;
      if (!sends && !(hop_of(a, p, other) == hop_of(b, p, other) &&
                      of_a.links[p][other].follows(of_b.links[p][other], b.by - a.by, in_use_)))
        return false;
      const auto& link = sends ? own.state.links[p][end] : of_b.links[p][other];
      for (const auto l : lanes_of_[p]) {
        if (!meets_alike(link.flows[l], own.state.ranks[end].arrivals[l],
                         of_a.ranks[other].arrivals[l], a.by, of_b.ranks[other].arrivals[l], b.by))
          return false;
      }
    }
    return true;
  }

  /// Whether the flow between a rank and one of two others is the same with both: it follows the later of its ends.
  static bool meets_alike(const ring_link::flow& f, const arrival& own, const arrival& a,
                          picoseconds by_a, const arrival& b, picoseconds by_b) {
    const auto together = [&](picoseconds one, picoseconds other, picoseconds by) {
      return std::max(one, moved_by(other, by));
    };
    if (together(own.next, a.next, by_a) != together(own.next, b.next, by_b)) return false;
    if (f.begins()) return true;
    const bool arrives = a.count > f.ended;
    if (arrives != (b.count > f.ended) || (arrives && a.bytes != b.bytes)) return false;
    const auto from = own.after(f.ended);
    return together(from, a.after(f.ended), by_a) == together(from, b.after(f.ended), by_b);
  }

  const ring_hop& hop_of(const neighbour& c, std::size_t pattern, std::size_t place) const {
    return ring_.hops[pattern][static_cast<std::size_t>(c.number * ring_.period) + place];
  }

  /// No rank goes further in a round than a few operations beyond the last one: ranks that have the time to run ahead would
  /// be in other states than those that have not.
  void raise_ceiling() {
    constexpr std::uint32_t lead = 3;
    auto last = std::numeric_limits<std::uint32_t>::max();
    each_row([&](row_place p) {
      for (const auto& rank : row_at(p).state.ranks)
        last = std::min(last, rank.state.streams.front().completed);
    });
    ceiling_ = last + lead;
  }

  /// Tells of the ranks between these from which on a kernel that may start in this round on the row has another variant.
  template <typename Tell>
  void each_change(const row_of_cells& row, int begin, int end, Tell tell) const {
    auto n = std::numeric_limits<std::uint32_t>::max();
    for (const auto& rank : row.state.ranks) n = std::min(n, rank.state.streams.front().completed);
    for (; n <= ceiling_ && n < changes_.size(); ++n) {
      for (const int change : changes_[n]) {
        if (begin <= change && change < end) tell(change);
      }
    }
  }

  /// The cells of the row before which that is, and those after them where some of the ranks have it.
  std::vector<int> changed_cells(const row_of_cells& row) const {
    std::vector<int> cells;
    if (row.count == 1) return cells;
    const auto add = [&](int change) {
      cells.push_back(change / ring_.period);
      if (change % ring_.period != 0) cells.push_back(change / ring_.period + 1);
    };
    each_change(row, row.first * ring_.period, (row.first + row.count) * ring_.period, add);
    return inside(row, std::move(cells));
  }

  std::vector<int> changed_blocks(const row_of_blocks& block) const {
    std::vector<int> blocks;
    if (block.count == 1) return blocks;
    const int ranks = ring_.block * ring_.period;
    const auto add = [&](int change) {
      blocks.push_back(change / ranks);
      if (change % ranks != 0) blocks.push_back(change / ranks + 1);
    };
    for (const auto& row : block.rows)
      each_change(row, block.first * ranks, (block.first + block.count) * ranks, add);
    return inside(block, std::move(blocks));
  }

  neighbour before_block(std::size_t b) const {
    const auto& other = blocks_[(b + blocks_.size() - 1) % blocks_.size()];
    return last_cell(other, other.last());
  }
  neighbour after_block(std::size_t b) const {
    const auto& other = blocks_[(b + 1) % blocks_.size()];
    return {&other.rows.front(), other.rows.front().first, 0};
  }

  /// Of a row's first block, `by` later.
  static neighbour last_cell(const row_of_blocks& block, picoseconds by) {
    const auto& row = block.rows.back();
    return {&row, row.first + row.count - 1, row.last() + by};
  }

  /// The cell before a row's first and that after its last, as seen from the row's first.
  neighbour before_row(row_place p) const {
    const auto& block = blocks_[p.block];
    if (p.row == 0)
      return block.count > 1 ? last_cell(block, -block.stride) : before_block(p.block);
    const auto& row = block.rows[p.row - 1];
    return {&row, row.first + row.count - 1, row.last()};
  }
  neighbour after_row(row_place p) const {
    const auto& block = blocks_[p.block];
    if (p.row + 1 < block.rows.size()) {
      const auto& row = block.rows[p.row + 1];
      return {&row, row.first, 0};
    }
    if (block.count == 1) return after_block(p.block);
    return {&block.rows.front(), block.rows.front().first, block.stride};
  }

  /// Those of its first cell.
  neighbour before(row_place p) const {
    const auto& row = row_at(p);
    return row.count > 1 ? neighbour{&row, row.first, -row.stride} : before_row(p);
  }
  neighbour after(row_place p) const {
    const auto& row = row_at(p);
    return row.count > 1 ? neighbour{&row, row.first, row.stride} : after_row(p);
  }

  // --- A round ----------------------------------------------------------------------------------

  /// What a row's first cell sees in a round.
  struct row_view {
    const row_of_blocks& block;
    row_of_cells& row;
    neighbour before, after;
  };

  row_view view(row_place p) { return {blocks_[p.block], row_at(p), before(p), after(p)}; }

  /// The cell in which the rank is that is so many places after the first of the row; makes that its place there.
  neighbour cell_of(const row_view& v, int& i) const {
    const int m = ring_.period;
    const auto c = i < 0 ? v.before : i >= m ? v.after : neighbour{&v.row, 0, 0};
    i = i < 0 ? i + m : i >= m ? i - m : i;
    return c;
  }

  void move_links(const row_view& v) {
    auto& own = v.row.state;
    for (std::size_t p = 0; p < ring_.direction.size(); ++p) {
      for (int i = 0; i < ring_.period; ++i) {
        int to = i + ring_.direction[p];
        const auto c = cell_of(v, to);
        move_link(own.links[p][static_cast<std::size_t>(i)], p,
                  static_cast<std::size_t>(v.row.first * ring_.period + i),
                  own.ranks[static_cast<std::size_t>(i)],
                  c.row->state.ranks[static_cast<std::size_t>(to)], c.by);
      }
    }
  }

  /// When the next flow of the lane begins at the earliest, if it has not begun.
  static picoseconds earliest(const ring_link::flow& f, std::size_t lane, const ring_rank& sender,
                              const ring_rank& receiver, picoseconds by, picoseconds latency) {
    const auto& received = receiver.arrivals[lane];
    const auto both =
        std::max(sender.arrivals[lane].after(f.ended), moved_by(received.after(f.ended), by));
    return later(std::max(both, f.end), latency);
  }

  void move_link(ring_link& link, std::size_t pattern, std::size_t sending, const ring_rank& sender,
                 const ring_rank& receiver, picoseconds by) {
    const auto& hop = ring_.hops[pattern][sending];
    const auto& least = lookaheads_[pattern][sending];
    const auto& lanes = lanes_of_[pattern];
    const auto earliest_of = [&](std::size_t l) {
      return earliest(link.flows[l], l, sender, receiver, by, least.latency[l]);
    };
    auto certain = never;  // no flow that has not begun yet begins before
    for (const auto l : lanes) {
      auto& f = link.flows[l];
      if (f.begins()) continue;
      const auto &sent = sender.arrivals[l], &received = receiver.arrivals[l];
      if (sent.count > f.ended && received.count > f.ended) {
        f.bytes = sent.bytes;
        const auto latency =  // flows of a lane mostly have one size
            ring_.sizes[l].size() == 1 ? least.latency[l] : hop.least_latency(f.bytes);
        f.begin = later(std::max(sent.time, moved_by(received.time, by)), latency);
      } else {
        certain = std::min(certain, earliest_of(l));
      }
    }
    while (true) {
      auto begin = never;
      std::size_t first = 0;
      for (const auto l : lanes) {
        if (link.flows[l].begin >= begin) continue;
        begin = link.flows[l].begin;
        first = l;
      }
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
    for (const auto l : lanes) {
      auto& f = link.flows[l];
      constexpr picoseconds rounding = 2;
      const auto bound =
          f.moves ? link.route.next_completion() - rounding
                  : later(f.begin != never ? f.begin : earliest_of(l), least.transfer[l]);
      progressed_ = progressed_ || bound != f.not_before;
      f.not_before = bound;
    }
  }

  /// What a rank sees while it runs.
  struct surroundings {
    ring_run& all;
    const row_of_blocks& block;
    const row_of_cells& row;
    int place;   ///< in a cell
    int number;  ///< of the rank
    ring_rank& rank;
    std::size_t done = 0;  ///< operations

    picoseconds now() const { return rank.now; }
    seconds local_time(const stream_operation& op) const { return all.local_time(op, *this); }
    double parts(const stream_operation&) const { return all.cost(*this).parts; }
    void wait(std::uint32_t s, picoseconds until) { rank.due[s] = until; }
    int arrive(const stream_operation& op, std::uint32_t) {
      auto& a = rank.arrivals[static_cast<std::size_t>(op.lane)];
      a = {a.count + 1, rank.now, a.next, op.bytes * op.stretch, true, true};
      return 2;
    }
    void finished(const stream_operation& op, const stream_state& s) {
      ++done;
      if (rank.now > s.started) all.keep(block, row, place, op, s.started, rank.now);
    }
  };

  surroundings around(const row_of_blocks& block, row_of_cells& row, int place) {
    return {*this,
            block,
            row,
            place,
            row.first * ring_.period + place,
            row.state.ranks[static_cast<std::size_t>(place)]};
  }

  /// What a rank has done, for all that it stands for.
  void count(const surroundings& seen) {
    done_ += seen.done * static_cast<std::size_t>(seen.row.count) *
             static_cast<std::size_t>(seen.block.count);
    count_compute(seen.block, seen.row, seen.place, seen.rank.state.compute);
  }

  local_cost cost_of(const stream_operation& op, int rank) const {
    return {placed_.costs().time(op.operation, rank),
            op.kernel ? placed_.costs().parts(op.operation, rank) : 0};
  }

  /// Of the operation of the compute stream that comes next on a rank.
  const local_cost& cost(const surroundings& seen) const {
    const auto n = seen.rank.state.streams.front().completed;
    const auto& changes = changes_[n];
    std::size_t part = 0;
    while (part < changes.size() && changes[part] <= seen.number) ++part;
    return costs_[n][part];
  }

  seconds local_time(const stream_operation& op, const surroundings& seen) const {
    const auto n = seen.rank.state.streams.front().completed;
    const auto& compute = programs_.streams.front();
    const bool computes = n < compute.size() && compute[n].operation == op.operation;
    return computes ? cost(seen).time / placed_.speed_of(seen.number)
                    : placed_.local_time(op.operation, seen.number);
  }

  /// An interval of the row's first rank at a place, where the watched rank is among those that it stands for.
  void keep(const row_of_blocks& block, const row_of_cells& row, int place,
            const stream_operation& op, picoseconds start, picoseconds end) {
    if (watched_ < 0 || watched_ % ring_.period != place) return;
    const int watched = watched_ / ring_.period, further = watched / ring_.block - block.first;
    const int cell = watched - further * ring_.block - row.first;
    if (further < 0 || further >= block.count || cell < 0 || cell >= row.count) return;
    const auto later = cell * row.stride + further * block.stride;
    intervals_.push_back(
        {op.operation, seconds(to_seconds(start + later)), seconds(to_seconds(end + later))});
  }

  void start(const row_of_blocks& block, row_of_cells& row) {
    for (int i = 0; i < ring_.period; ++i) {
      auto seen = around(block, row, i);
      rank_run<surroundings>(rules_, no_launches_, seen.rank.state, seen).start_ready();
      count(seen);
    }
  }

  /// The compute time of a rank, for all that it stands for: as differences along blocks and along their cells.
  void count_compute(const row_of_blocks& block, const row_of_cells& row, int i,
                     picoseconds& time) {
    if (time == 0) return;
    const int cell = row.first - block.first * ring_.block;
    for (const bool after : {false, true}) {
      const int b = block.first + (after ? block.count : 0);
      compute_of(b, cell, i) += after ? -time : time;
      compute_of(b, cell + row.count, i) -= after ? -time : time;
    }
    time = 0;
  }

  picoseconds& compute_of(int block, int cell, int i) {
    return compute_[static_cast<std::size_t>((block * (ring_.block + 1) + cell) * ring_.period +
                                             i)];
  }

  void sum_compute() {
    const auto m = static_cast<std::size_t>(ring_.period),
               of_block = m * static_cast<std::size_t>(ring_.block + 1);
    for (std::size_t n = 0; n < compute_.size(); ++n) {
      const bool first_cell = n % of_block < m, first_block = n < of_block;
      if (!first_cell) compute_[n] += compute_[n - m];
      if (!first_block) compute_[n] += compute_[n - of_block];
      if (!first_cell && !first_block) compute_[n] -= compute_[n - of_block - m];
    }
  }

  /// The latest flow of a lane that a rank sends or receives, in the rank's own time.
  struct seen_flow {
    std::uint32_t ended;
    picoseconds end, not_before;

    /// Whether the flow of the rank's latest arrival has ended, which is `end`.
    bool known(const arrival& a) const { return ended == a.count; }
  };
  struct seen_lane {
    seen_flow sent, received;
  };
  using seen_lanes = std::array<seen_lane, most_lanes>;

  seen_lanes lanes_of(const row_view& v, int place) const {
    const auto seen = [](const ring_link::flow& f, picoseconds by) {
      return seen_flow{f.ended, f.end + by, moved_by(f.not_before, by)};
    };
    seen_lanes lanes;
    for (std::size_t p = 0; p < ring_.direction.size(); ++p) {
      int from = place - ring_.direction[p];
      const auto c = cell_of(v, from);
      const auto& sent = v.row.state.links[p][static_cast<std::size_t>(place)];
      const auto& received = c.row->state.links[p][static_cast<std::size_t>(from)];
      for (const auto l : lanes_of_[p])
        lanes[l] = {seen(sent.flows[l], 0), seen(received.flows[l], c.by)};
    }
    return lanes;
  }

  void move_ranks(const row_view& v) {
    for (int i = 0; i < ring_.period; ++i) {
      auto seen = around(v.block, v.row, i);
      move_rank(seen, lanes_of(v, i));
      count(seen);
    }
  }

  void move_rank(surroundings& seen, const seen_lanes& lanes) {
    auto& rank = seen.rank;
    rank_run<surroundings> run(rules_, no_launches_, rank.state, seen);
    picoseconds quiet = never;
    while (true) {
      auto flow_end = never, wait_end = never, horizon = never;
      for (std::size_t s = 0; s < in_use_.streams; ++s) wait_end = std::min(wait_end, rank.due[s]);
      const auto count = [&](const arrival& a, const seen_flow& f) {
        auto& first = f.known(a) ? flow_end : horizon;
        first = std::min(first, f.known(a) ? f.end : f.not_before);
      };
      for (std::size_t l = 0; l < in_use_.lanes; ++l) {
        const auto& a = rank.arrivals[l];
        if (a.sends) count(a, lanes[l].sent);
        if (a.receives) count(a, lanes[l].received);
      }
      const auto time = std::min(flow_end, wait_end);
      quiet = std::min(time, horizon);
      if (time == never || time >= horizon) break;
      if (rank.state.streams.front().completed >= ceiling_) break;
      progressed_ = true;
      rank.now = time;
      if (flow_end == time) end_flows(lanes, rank, run);
      end_waits(rank, run);
      run.start_made_ready();
    }
    for (std::size_t l = 0; l < in_use_.lanes; ++l) {
      const auto next = next_arrival(rank, programs_.lanes[l].stream, quiet);
      progressed_ = progressed_ || next != rank.arrivals[l].next;
      rank.arrivals[l].next = next;
    }
  }

  /// Before when a rank, on which nothing happens before `quiet`, does not arrive again at a stream's communication: what has
  /// to end first takes its time. The further ranks can tell, the more their neighbours do in a round.
  picoseconds next_arrival(const ring_rank& rank, std::uint32_t s, picoseconds quiet) const {
    const auto& streams = rank.state.streams;
    const auto& own = streams[s];
    const auto& program = programs_.streams[s];
    if (own.busy && own.flows_pending == 0) return std::max(quiet, least_end(rank, s));
    if (own.busy && program[own.completed].rounds > 1) return quiet;
    const auto next = own.completed + own.busy;
    if (next == program.size()) return never;
    auto least = quiet;
    for (std::uint32_t other = 0; other < in_use_.streams; ++other) {
      if (other != s && streams[other].completed < program[next].needs[other])
        least = std::max(least, least_end(rank, other));
    }
    return least;
  }

  /// Of what a stream does that nothing but time ends; else 0.
  static picoseconds least_end(const ring_rank& rank, std::uint32_t s) {
    constexpr std::uint32_t compute_stream = 0;
    if (s == compute_stream && rank.state.kernel.running()) return rank.state.kernel.least_end();
    return rank.due[s] == never ? 0 : rank.due[s];
  }

  /// From the first stream on again after each, as its end may let another one end now.
  void end_waits(ring_rank& rank, rank_run<surroundings>& run) const {
    for (std::uint32_t s = 0; s < in_use_.streams;) {
      if (rank.due[s] != rank.now) {
        ++s;
        continue;
      }
      rank.due[s] = never;
      run.end_wait(s);
      s = 0;
    }
  }

  void end_flows(const seen_lanes& lanes, ring_rank& rank, rank_run<surroundings>& run) {
    for (std::size_t l = 0; l < in_use_.lanes; ++l) {
      auto& a = rank.arrivals[l];
      const auto end = [&](bool& open, const seen_flow& f) {
        if (!open || !f.known(a) || f.end != rank.now) return;
        open = false;
        run.end_flow(programs_.lanes[l].stream);
      };
      end(a.sends, lanes[l].sent);
      end(a.receives, lanes[l].received);
    }
  }

  void add_link_loads(timeline& t) const;

  const placed_schedule& placed_;
  const simulation_options& options_;
  ring_layout ring_;
  const stream_programs& programs_;
  in_use in_use_;
  rank_rules rules_;
  launch_list no_launches_;
  std::vector<std::vector<lookahead>> lookaheads_;  ///< by pattern, sender
  std::vector<std::vector<std::size_t>> lanes_of_;  ///< by pattern
  std::vector<row_of_blocks> blocks_;
  std::vector<cut_ends> cuts_;             ///< by row
  std::vector<std::vector<int>> changes_;  ///< by operation of the compute stream: variant_changes
  std::vector<std::vector<local_cost>>
      costs_;  ///< the same, of the first rank and from each change on
  std::vector<picoseconds>
      compute_;                ///< by block, cell and rank, with one more of each: differences
  std::uint32_t ceiling_ = 0;  ///< operations of the compute stream
  std::size_t done_ = 0, wanted_ = 0;
  std::vector<flow_tag> ended_;
  bool progressed_ = false;
  int watched_ = -1;                 ///< a rank; -1: none
  std::vector<interval> intervals_;  ///< its
};

timeline ring_run::result() {
  timeline t;
  sum_compute();
  double bytes = 0;
  for (const auto& stream : programs_.streams) {
    for (const auto& op : stream) bytes += op.lane < 0 ? 0 : op.bytes;
  }
  for (const auto& block : blocks_) {
    for (int b = 0; b < block.count; ++b) {
      for (const auto& row : block.rows) {
        for (int c = 0; c < row.count; ++c) {
          const auto later = b * block.stride + c * row.stride;
          const int cell = row.first - block.first * ring_.block + c;
          for (int i = 0; i < ring_.period; ++i) {
            const auto& rank = row.state.ranks[static_cast<std::size_t>(i)].state;
            t.ranks.push_back({.rank = static_cast<int>(t.ranks.size()),
                               .end = seconds(to_seconds(rank.end + later)),
                               .compute = seconds(to_seconds(compute_of(block.first + b, cell, i))),
                               .intervals = {},
                               .bytes_sent = bytes});
          }
        }
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
  if (programs.lanes.size() > most_lanes || programs.run_ahead) return {};
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
