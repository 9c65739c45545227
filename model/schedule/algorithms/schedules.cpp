#include "model/schedule/algorithms/schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/attention/heads.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

std::string one_place(const strategy& s, const attention&) {
  return s.rows == 1 && s.cols == 1 ? "" : "has all ranks in one exchange of heads, grid 1x1";
}

std::string one_column(const strategy& s, const attention&) {
  if (s.order == kv_order::transposed) return "keeps keys in the direct order";
  return s.cols == 1 ? "" : "runs on one column of ranks";
}

std::string direct_order(const strategy& s, const attention&) {
  return s.order == kv_order::direct ? "" : "keeps keys in the direct order";
}

std::string two_rings(const strategy& s, const attention& a) {
  return s.rows > 1 && s.cols > 1 ? direct_order(s, a) : "has two rings (else it is ring or usp)";
}

std::string team_squared(const strategy& s, const attention& a) {
  if (s.cols == 1) return "has teams of several ranks (else it is ring)";
  return s.rows % s.cols == 0 ? direct_order(s, a) : "needs rows to be a multiple of columns";
}

std::string few_ranks(const strategy& s, const attention& a) {
  constexpr int most = 128;
  return s.rows > most ? "sends from every rank to every other, modelled up to 128 ranks"
                       : one_column(s, a);
}

std::string several_columns(const strategy& s, const attention& a) {
  const bool two_stages = s.rows > 1 && s.cols > 1;
  return two_stages ? direct_order(s, a) : "has two stages (else it is allgather)";
}

std::string square_if_transposed(const strategy& s, const attention&) {
  const bool fits = s.order == kv_order::direct || s.rows == s.cols;
  return fits ? "" : "needs a square grid for the transposed K/V order";
}

using exchange = algorithm::exchange;

constexpr algorithm table[] = {
    {"ring", "queries stay, keys and values travel round all ranks", "arXiv 2310.01889", ring,
     one_column},
    {"allgather", "every rank gathers all keys and values (TransformerEngine, Llama 3)",
     "arXiv 2407.21783, section 3.3.2", allgather, one_column},
    {"attention2d",
     "gathers queries along rows and keys along columns, one kernel call, reduces outputs",
     "arXiv 2503.15758, algorithms 1 and 7", attention2d, square_if_transposed, exchange::any},
    {"attention2d-overlap", "Attention2D with all transfers hop by hop under computation",
     "arXiv 2503.15758, algorithms 4 to 6", attention2d_overlap, square_if_transposed,
     exchange::any},
    {"mesh", "a tile of query and key chunks a rank, in greedy steps", "arXiv 2512.20968", mesh,
     direct_order, exchange::any},
    {"ulysses", "ranks exchange tokens for heads, attend all tokens, exchange back",
     "arXiv 2309.14509", ring, one_place, exchange::all_ranks},
    {"usp", "Ulysses within groups, ring between them (a2a+p2p of TransformerEngine)",
     "arXiv 2405.07719", ring, one_column, exchange::any},
    {"double-ring", "rings within rows while keys travel on between rows (LoongTrain)",
     "arXiv 2406.18485", double_ring, two_rings, exchange::any},
    {"startrail", "teams of C ranks share queries, keys of C teams travel round a ring",
     "arXiv 2407.00611", startrail, team_squared},
    {"burst", "ring forward; backward queries and dQ travel, keys stay (BurstAttention)",
     "arXiv 2403.09347", burst, one_column},
    {"tokenring", "queries travel one way, partial outputs straight home the other way",
     "arXiv 2412.20501", tokenring, few_ranks},
    {"hierarchical-allgather", "all keys gathered along rows between nodes, then down columns",
     "arXiv 2407.21783, in two stages", hierarchical_allgather, several_columns},
};

}  // namespace

std::span<const algorithm> algorithms() {
  return table;
}

const algorithm& find_algorithm(std::string_view name) {
  std::string names;
  for (const auto& a : table) {
    if (a.name == name) return a;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", a.name);
  }
  throw input_error(asked("schedule"), std::string(name), "expected one of: " + names);
}

std::vector<std::pair<int, int>> grids_of(int ranks) {
  std::vector<std::pair<int, int>> result;
  for (int cols = 1; cols <= ranks; ++cols) {
    if (ranks % cols == 0) result.emplace_back(ranks / cols, cols);
  }
  return result;
}

namespace {

/// Heads over tensor-parallel ranks and, of these shares, over an exchange.
std::string head_refusal(const strategy& s, const attention& a, exchange kind) {
  const auto all = all_heads(a);
  if (a.kv_heads % s.tensor_parallel != 0) {
    return fmt::format("{} K/V heads are not a multiple of tp {}", a.kv_heads, s.tensor_parallel);
  }
  const auto own = share_of(all, s.tensor_parallel, 0);
  if (s.ulysses > 1 && kind == exchange::none) return "has no exchange of heads (ulysses 1)";
  if (!can_share(own, s.ulysses)) {
    return fmt::format(
        "ulysses {} does not suit {} query and {} K/V heads a rank; even degrees: {}{}", s.ulysses,
        own.queries, own.keys, even_degrees(own, own.queries),
        kind == exchange::all_ranks ? "; on more ranks: usp, a ring around it, or attention2d"
                                    : "");
  }
  return "";
}

/// Largest first; for usp, if possible, those that leave a ring and need no copies of K/V heads.
std::vector<int> usual_degrees(const strategy& s, const attention& a, int places) {
  auto degrees = ulysses_degrees(s, a, places);
  std::reverse(degrees.begin(), degrees.end());
  std::stable_partition(degrees.begin(), degrees.end(), [&](int degree) {
    return degree < places && std::int64_t{degree} * s.tensor_parallel <= a.kv_heads;
  });
  return degrees;
}

strategy with_degree(strategy s, int degree) {
  s.ulysses = degree;
  return s;
}

/// The squarest grid that the algorithm takes on this many groups, with 0 rows if none; all of them go to `feasible`.
strategy with_squarest_grid(const strategy& s, const attention& a, int groups,
                            std::string& feasible) {
  strategy squarest = s;
  squarest.rows = 0;
  for (const auto& [rows, cols] : grids_of(groups)) {
    auto candidate = s;
    candidate.rows = rows;
    candidate.cols = cols;
    if (!refusal(candidate, a).empty()) continue;
    feasible += fmt::format("{}{}x{}", feasible.empty() ? "" : ", ", rows, cols);
    if (s.ulysses > 1) feasible += fmt::format(" with ulysses {}", s.ulysses);
    if (squarest.rows == 0 || std::abs(rows - cols) < std::abs(squarest.rows - squarest.cols))
      squarest = candidate;
  }
  return squarest;
}

}  // namespace

void require_tensor_parallel(const strategy& s, const attention& a, int ranks) {
  if (ranks % s.tensor_parallel != 0) {
    throw infeasible(asked("tp"), std::to_string(s.tensor_parallel),
                     fmt::format("does not divide {} ranks", ranks));
  }
  if (a.kv_heads % s.tensor_parallel != 0) {
    throw infeasible(asked("tp"), std::to_string(s.tensor_parallel),
                     fmt::format("does not divide {} K/V heads", a.kv_heads));
  }
}

std::string refusal(const strategy& s, const attention& a) {
  const auto& chosen = find_algorithm(s.schedule);
  if (auto reason = head_refusal(s, a, chosen.heads); !reason.empty()) return reason;
  return chosen.refusal(s, a);
}

std::vector<int> ulysses_degrees(const strategy& s, const attention& a, int ranks) {
  const auto kind = find_algorithm(s.schedule).heads;
  std::vector<int> result;
  for (int degree = 1; degree <= ranks; ++degree) {
    if (ranks % degree != 0 || (kind == exchange::all_ranks && degree < ranks)) continue;
    if (head_refusal(with_degree(s, degree), a, kind).empty()) result.push_back(degree);
  }
  return result;
}

strategy complete(strategy s, const attention& a, int ranks) {
  const auto& chosen = find_algorithm(s.schedule);
  require_tensor_parallel(s, a, ranks);
  const int places = ranks / s.tensor_parallel;
  const bool exchanges = chosen.name == "usp" || chosen.heads == exchange::all_ranks;
  if (s.ulysses == 0 && !exchanges) s.ulysses = 1;
  std::vector<int> degrees{s.ulysses};
  if (s.ulysses == 0) degrees = usual_degrees(s, a, places);
  std::string feasible;
  strategy first;
  for (const int degree : degrees) {
    if (places % degree != 0) continue;
    const auto squarest = with_squarest_grid(with_degree(s, degree), a, places / degree, feasible);
    if (first.rows == 0 && squarest.rows != 0) first = squarest;
  }
  const std::string options = feasible.empty() ? "none" : feasible;
  if (s.rows == 0 && first.rows != 0) return first;
  if (s.rows == 0) {
    const auto degree = std::max(s.ulysses, chosen.heads == exchange::all_ranks ? places : 1);
    auto reason = head_refusal(with_degree(s, degree), a, chosen.heads);
    if (!reason.empty()) reason = "; " + reason;
    throw infeasible(asked("schedule"), s.schedule,
                     fmt::format("no grid of {} ranks will do{}", ranks, reason));
  }
  const auto grid = fmt::format("{}x{}", s.rows, s.cols);
  const int groups = s.rows * s.cols;
  if (s.ulysses == 0 && places % groups == 0) s.ulysses = places / groups;
  if (groups * ranks_per_place(s) != ranks) {
    throw infeasible(asked("grid"), grid,
                     fmt::format("has {} ranks, the cluster {}; feasible: {}",
                                 groups * std::max(1, ranks_per_place(s)), ranks, options));
  }
  if (const auto reason = refusal(s, a); !reason.empty()) {
    throw infeasible(asked("grid"), grid,
                     fmt::format("{} {}; feasible: {}", s.schedule, reason, options));
  }
  return s;
}

rank_grid schedule_grid(const strategy& s) {
  if (s.schedule == "startrail")
    return rank_grid({s.rows / s.cols, s.cols, s.cols, ranks_per_place(s)});
  return rank_grid({s.rows, s.cols, ranks_per_place(s)});
}

schedule make_schedule(const strategy& s, const attention& a, pass_kind pass) {
  auto program = find_algorithm(s.schedule).generate(s, a, pass);
  program.name = s.schedule;
  program =
      with_tensor_parallelism(with_head_exchange(std::move(program), s.ulysses), s.tensor_parallel);
  return s.launch == launch_order::compute_first ? launched_compute_first(std::move(program))
                                                 : program;
}

}  // namespace attnsim
