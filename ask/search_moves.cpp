#include "ask/search_moves.hpp"

#include <algorithm>
#include <cmath>

#include "ask/compositions.hpp"
#include "model/attention/heads.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"

namespace attnsim {
namespace {

constexpr int unit_of_shares = 1000;  ///< of the mean share
constexpr int most_parts = 8;

/// Uniform, the same on all machines.
std::size_t below(std::size_t n, std::mt19937_64& random) {
  return n == 0 ? 0 : static_cast<std::size_t>(random() % n);
}

template <typename T>
const T& one_of(const std::vector<T>& list, std::mt19937_64& random) {
  return list[below(list.size(), random)];
}

bool may_share_unequally(const attention& a, const strategy& s) {
  const auto& chosen = find_algorithm(s.schedule);
  const bool one_sequence =
      a.documents.empty() && a.prefix == 0 && a.kv_sequence == 0 && a.window == 0 && a.padding == 0;
  return one_sequence && s.rows * s.cols > 1 && s.tokens != token_layout::striped &&
         s.order == kv_order::direct && !chosen.whole_queries;
}

}  // namespace

search_moves::search_moves(const cluster& c, const attention& a, int ranks)
    : cluster_(c), attention_(a), ranks_(ranks), levels_(levels_of(c, ranks)) {}

std::vector<strategy> search_moves::compositions(const strategy& usual) const {
  auto all = all_compositions(levels_, usual);
  std::erase_if(all, [&](const strategy& s) { return !refusal(s, attention_).empty(); });
  return all;
}

std::vector<int> search_moves::part_counts(const strategy& s) const {
  std::vector<int> counts;
  for (int parts = 1; parts <= most_parts; parts *= 2) {
    if (attention_.kv_heads % (parts * s.tensor_parallel) != 0) break;
    const auto own = share_of(all_heads(attention_), s.tensor_parallel, 0);
    if (can_share(share_of(own, parts, 0), s.ulysses)) counts.push_back(parts);
  }
  return counts;
}

std::vector<strategy> search_moves::refinements(const strategy& s) const {
  std::vector<std::vector<int>> shares{{}};
  if (may_share_unequally(attention_, s)) {
    if (auto by_speed = shares_by_speed(s); !by_speed.empty())
      shares.push_back(std::move(by_speed));
  }
  std::vector<strategy> all;
  for (const auto& one : shares) {
    for (const int parts : part_counts(s)) {
      all.push_back(s);
      all.back().shares = one;
      all.back().parts = parts;
    }
  }
  return all;
}

std::vector<int> search_moves::shares_by_speed(const strategy& s) const {
  const auto devices = place(s.placement, schedule_grid(s), cluster_);
  const auto members = static_cast<std::size_t>(ranks_per_place(s));
  std::vector<double> speeds(devices.size() / members);
  double all = 0;
  // Ranks of a chunk have equal parts of its work, so the slowest sets their speed.
  for (std::size_t chunk = 0; chunk < speeds.size(); ++chunk) {
    speeds[chunk] = 1;
    for (std::size_t i = chunk * members; i < (chunk + 1) * members; ++i)
      speeds[chunk] =
          std::min(speeds[chunk], cluster_.device_speed[static_cast<std::size_t>(devices[i])]);
    all += speeds[chunk];
  }
  const auto [least, most] = std::minmax_element(speeds.begin(), speeds.end());
  if (*least == *most) return {};
  std::vector<int> shares;
  for (const double speed : speeds) {
    const double mean = all / static_cast<double>(speeds.size());
    shares.push_back(std::max(1, static_cast<int>(std::lround(unit_of_shares * speed / mean))));
  }
  return shares;
}

strategy search_moves::step(strategy s, std::mt19937_64& random) const {
  switch (below(7, random)) {
    case 0:
      if (const auto counts = part_counts(s); !counts.empty()) s.parts = one_of(counts, random);
      return s;
    case 1:
    case 2:
      return other_level(std::move(s), random);
    case 3:
      return other_place(std::move(s), random);
    case 4:
      return other_shares(std::move(s), random);
    case 5:
      s.reduction =
          s.reduction == reduction_kind::ring ? reduction_kind::all_to_all : reduction_kind::ring;
      return s;
    default:
      s.launch = s.launch == launch_order::communication_first ? launch_order::compute_first
                                                               : launch_order::communication_first;
      return s;
  }
}

/// Of a composition some neighbour's ways; else any, as a published schedule's are not known by level.
strategy search_moves::other_level(strategy s, std::mt19937_64& random) const {
  std::vector<level_way> ways;
  for (std::size_t i = 0; i < levels_.size(); ++i) ways.push_back(level_ways[below(4, random)]);
  auto composed = compose(levels_, ways, s);
  composed.order = kv_order::direct;
  if (s.tokens == token_layout::striped) composed.tokens = token_layout::zigzag;
  composed.shares.clear();
  if (may_share_unequally(attention_, composed) && !s.shares.empty())
    composed.shares = shares_by_speed(composed);
  return composed;
}

strategy search_moves::other_place(strategy s, std::mt19937_64& random) const {
  if (!find_algorithm(s.schedule).found_by_search) {
    s.placement = one_of(distinct_placements(schedule_grid(s), cluster_), random);
    return s;
  }
  auto devices = place(s.placement, schedule_grid(s), cluster_);
  const auto group = static_cast<std::size_t>(ranks_per_place(s));
  const auto groups = devices.size() / group;
  const auto one = below(groups, random), other = below(groups, random);
  if (one == other) return s;
  std::swap_ranges(devices.begin() + static_cast<std::ptrdiff_t>(one * group),
                   devices.begin() + static_cast<std::ptrdiff_t>((one + 1) * group),
                   devices.begin() + static_cast<std::ptrdiff_t>(other * group));
  s.placement = placed_on(devices);
  return s;
}

strategy search_moves::other_shares(strategy s, std::mt19937_64& random) const {
  if (!may_share_unequally(attention_, s)) return s;
  const auto chunks = static_cast<std::size_t>(s.rows * s.cols);
  const auto choice = below(4, random);
  if (choice == 0) s.shares = shares_by_speed(s);
  if (choice == 1) s.shares.clear();
  if (choice < 2) return s;
  if (s.shares.empty()) s.shares.assign(chunks, unit_of_shares);
  auto& from = s.shares[below(chunks, random)];
  auto& to = s.shares[below(chunks, random)];
  const int moved = std::min(from - 1, 1 + from / static_cast<int>(4 << below(3, random)));
  from -= moved;
  to += moved;
  return s;
}

}  // namespace attnsim
