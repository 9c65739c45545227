#include "sim/ring_layout.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace attnsim {
namespace {

using rank_kind = std::vector<std::tuple<double, double, double, const void*>>;

/// +1 or -1 where every rank sends so far along the ring, else 0.
int direction_of(const transfers& t, int pattern, int ranks) {
  if (t.flows(pattern) != ranks) return 0;
  int direction = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const int flow = t.sent(pattern, rank);
    if (flow < 0) return 0;
    const auto members = t.members(pattern, flow);
    if (members.size() != 2 || members[0] != rank) return 0;
    if (t.received(pattern, members[1]) != flow) return 0;
    const int distance = (members[1] - rank + ranks) % ranks;
    const int found = distance == 1 ? 1 : distance == ranks - 1 ? -1 : 0;
    if (found == 0 || (direction != 0 && found != direction)) return 0;
    direction = found;
  }
  return direction;
}

/// Sets the hops; false where flows of two ranks or patterns meet on a link.
bool find_hops(const placed_schedule& i, ring_layout& ring) {
  const auto links = i.on().network.links();
  std::vector<bool> used(links.size());
  const auto& t = i.communication();
  for (int p = 0; p < t.patterns(); ++p) {
    auto& hops = ring.hops.emplace_back();
    for (int rank = 0; rank < ring.ranks; ++rank) {
      const auto form = t.form(p, t.sent(p, rank));
      ring_hop hop{.rate = std::numeric_limits<double>::infinity(),
                   .rate_limit = form.rate_limit,
                   .latency = form.latency};
      for (const auto& use : form.uses) {
        if (used[use.link]) return false;
        used[use.link] = true;
        hop.rate = std::min(hop.rate, links[use.link].capacity.value() / use.weight);
      }
      hops.push_back(hop);
    }
  }
  return true;
}

/// Flows that take no time would end as they start.
bool take_time(const ring_layout& ring, const stream_programs& programs) {
  for (std::size_t l = 0; l < programs.lanes.size(); ++l) {
    for (const auto& hop : ring.hops[static_cast<std::size_t>(programs.lanes[l].pattern)]) {
      for (const double bytes : ring.sizes[l]) {
        if (hop.least_transfer(bytes) < 1) return false;
      }
    }
  }
  return true;
}

std::vector<std::vector<double>> sizes_of(const stream_programs& programs) {
  std::vector<std::vector<double>> sizes(programs.lanes.size());
  for (const auto& stream : programs.streams) {
    for (const auto& op : stream) {
      if (op.lane < 0) continue;
      auto& of_lane = sizes[static_cast<std::size_t>(op.lane)];
      const double bytes = op.bytes * op.stretch;
      if (std::find(of_lane.begin(), of_lane.end(), bytes) == of_lane.end())
        of_lane.push_back(bytes);
    }
  }
  return sizes;
}

std::vector<int> kinds_of_ranks(const placed_schedule& i, const ring_layout& ring) {
  std::map<rank_kind, int> numbers;
  std::vector<int> kinds;
  for (int rank = 0; rank < ring.ranks; ++rank) {
    rank_kind kind{{i.speed_of(rank), 0, 0, nullptr}};
    for (const auto& of_pattern : ring.hops) {
      const auto& hop = of_pattern[static_cast<std::size_t>(rank)];
      kind.emplace_back(hop.rate, hop.rate_limit, hop.latency.fixed.value(),
                        hop.latency.ramp.points().data());
    }
    kinds.push_back(numbers.try_emplace(std::move(kind), numbers.size()).first->second);
  }
  return kinds;
}

/// How many cells of a period differ from the one before.
int changes_at(const std::vector<int>& kinds, int period) {
  int changes = 0;
  const auto p = static_cast<std::size_t>(period);
  for (std::size_t first = p; first < kinds.size(); first += p) {
    const auto cell = kinds.begin() + static_cast<std::ptrdiff_t>(first);
    changes += !std::equal(cell, cell + period, cell - period);
  }
  return changes;
}

/// The period with which least is run in a round: three cells of each row of cells that are alike.
std::pair<int, int> best_period(const std::vector<int>& kinds) {
  constexpr int longest = 64;
  const int ranks = static_cast<int>(kinds.size());
  int best = ranks, least = ranks;
  for (int period = 1; period <= std::min(longest, ranks / 3); ++period) {
    if (ranks % period != 0) continue;
    const int run = 3 * period * (changes_at(kinds, period) + 1);
    if (run >= least) continue;
    least = run;
    best = period;
  }
  return {best, least};
}

void number_cells(const std::vector<int>& kinds, ring_layout& ring) {
  std::map<std::vector<int>, int> numbers;
  for (int cell = 0; cell < ring.cells(); ++cell) {
    const auto first = kinds.begin() + cell * ring.period;
    const std::vector<int> of_cell(first, first + ring.period);
    ring.kind_of_cell.push_back(numbers.try_emplace(of_cell, numbers.size()).first->second);
  }
}

/// As many cells as least is run of in a round: three blocks of each row of blocks that are alike.
int best_block(const std::vector<int>& kind_of_cell) {
  const int cells = static_cast<int>(kind_of_cell.size()), changes = changes_at(kind_of_cell, 1);
  int best = cells, least = changes + 1;
  for (int block = 1; block <= cells / 3; ++block) {
    if (cells % block != 0) continue;
    const int blocks = cells / block, alike = changes_at(kind_of_cell, block) + 1;
    const int run = std::min(3 * alike, blocks) * (changes / blocks + 1);
    if (run >= least) continue;
    least = run;
    best = block;
  }
  return best;
}

/// An operand that is one chunk, of the rank so many further along the ring: its distance; else nothing.
std::optional<int> distance_of(const placed_schedule& i, const operand& o) {
  const auto& s = i.program();
  const bool one_chunk = s.slot_count(o) == 1 && o.at.gathered == 0 && o.at.copies == 0 &&
                         !o.at.transposed && !s.column_major_chunks && s.tensor_parallel == 1 &&
                         s.head_axis == 0;
  if (!one_chunk) return {};
  return s.first_chunk(0, o);
}

/// Whether every kernel's variants are known, as its operands are single chunks along the ring.
bool has_variants(const placed_schedule& i) {
  const auto& program = i.program().program;
  return std::all_of(program.begin(), program.end(), [&](const operation& op) {
    if (!is_kernel(op.kind)) return true;
    return i.work().tile_variant(op, 0) >= 0 && distance_of(i, find(op.reads, tensor::q)) &&
           distance_of(i, find(op.reads, tensor::k));
  });
}

bool has_one_long_axis(const rank_grid& grid) {
  return std::count(grid.extents().begin(), grid.extents().end(), 1) + 1 == grid.axes();
}

}  // namespace

picoseconds ring_hop::least_latency(double bytes) const {
  return to_picoseconds(latency.of(bytes).value());
}

picoseconds ring_hop::least_transfer(double bytes) const {
  return to_picoseconds(bytes / std::min(rate, rate_limit)) - 1;  // as it may be rounded twice
}

std::optional<ring_layout> find_ring(const placed_schedule& i, const stream_programs& programs) {
  constexpr int least_gain = 2;
  if (!i.is_as_modelled() || !has_one_long_axis(i.program().grid) || !has_variants(i)) return {};
  ring_layout ring;
  ring.ranks = i.ranks();
  for (int p = 0; p < i.communication().patterns(); ++p) {
    ring.direction.push_back(direction_of(i.communication(), p, ring.ranks));
    if (ring.direction.back() == 0) return {};
  }
  ring.sizes = sizes_of(programs);
  if (ring.direction.empty() || !find_hops(i, ring) || !take_time(ring, programs)) return {};
  const auto kinds = kinds_of_ranks(i, ring);
  const auto [period, run] = best_period(kinds);
  if (run * least_gain > ring.ranks) return {};
  ring.period = period;
  number_cells(kinds, ring);
  ring.block = best_block(ring.kind_of_cell);
  return ring;
}

std::vector<int> variant_changes(const placed_schedule& i, std::size_t op) {
  const auto& reads = i.program().program[op].reads;
  std::vector<int> changes;
  for (const auto what : {tensor::q, tensor::k}) {
    // From here on the chunk's number starts at 0 again.
    const int wraps = i.ranks() - *distance_of(i, find(reads, what));
    if (wraps < i.ranks()) changes.push_back(wraps);
  }
  return changes;
}

}  // namespace attnsim
