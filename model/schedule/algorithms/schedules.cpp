#include "model/schedule/algorithms/schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "model/attention/heads.hpp"
#include "model/error.hpp"
#include "model/named.hpp"
#include "model/schedule/algorithms/generators.hpp"
#include "model/schedule/head_parts.hpp"
#include "model/schedule/latent_keys.hpp"
#include "model/schedule/wire_type.hpp"

namespace attnsim {
#define SCHEDULE(name) algorithm describe_##name();
#include "model/schedule/algorithms/all_schedules.inc"
#undef SCHEDULE

namespace {

std::deque<algorithm>& known() {
  static std::deque<algorithm> list{
#define SCHEDULE(name) describe_##name(),
#include "model/schedule/algorithms/all_schedules.inc"
#undef SCHEDULE
  };
  return list;
}

const algorithm* find_known(std::string_view name) {
  const auto& list = known();
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const algorithm& one) { return one.name == name; });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace

const std::deque<algorithm>& algorithms() {
  return known();
}

void add_algorithm(algorithm one) {
  if (find_known(one.name))
    throw std::invalid_argument(fmt::format("there is a schedule called {} already", one.name));
  known().push_back(std::move(one));
}

const algorithm& find_algorithm(std::string_view name) {
  try {
    return find_named(known(), name);
  } catch (const std::invalid_argument& e) {
    throw input_error(asked("schedule"), std::string(name), e.what());
  }
}

std::vector<std::pair<int, int>> grids_of(int ranks) {
  std::vector<std::pair<int, int>> result;
  for (const int cols : divisors_of(ranks)) result.emplace_back(ranks / cols, cols);
  return result;
}

namespace {

/// Heads over tensor-parallel ranks and, of these shares, over an exchange.
std::string head_refusal(const strategy& s, const attention& a, algorithm::exchange kind) {
  const auto all = all_heads(a);
  if (a.kv_heads % s.tensor_parallel != 0) {
    return fmt::format("{} K/V heads are not a multiple of tp {}", a.kv_heads, s.tensor_parallel);
  }
  const auto own = share_of(all, s.tensor_parallel, 0);
  if (s.ulysses > 1 && kind == algorithm::exchange::none)
    return "has no exchange of heads (ulysses 1)";
  if (!can_share(own, s.ulysses)) {
    return fmt::format(
        "ulysses {} does not suit {} query and {} K/V heads a rank; even degrees: {}{}", s.ulysses,
        own.queries, own.keys, even_degrees(own, own.queries),
        kind == algorithm::exchange::all_ranks
            ? "; on more ranks: usp, a ring around it, or attention2d"
            : "");
  }
  return "";
}

/// Largest first; if possible, those that leave several places and need no copies of K/V heads.
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

strategy on_one_column(strategy s, int places) {
  s.rows = places;
  s.cols = 1;
  return s;
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

namespace {

bool sends_keys(const strategy& s, const attention& a) {
  const auto& chosen = find_algorithm(s.schedule);
  if (s.ulysses > 1) return true;
  if (s.rows * s.cols == 1 || !chosen.sends) return false;
  const chunk_bytes keys{.keys = 1, .halo_keys = a.window > 0 ? 1 : 0};
  const auto parts = chosen.sends(s, keys, pass_kind::forward).parts;
  return std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.bytes > 0; });
}

bool caches_latents(const attention& a) {
  return a.latent_rank > 0 && a.prefix > 0;
}

std::string latent_refusal(const strategy& s, const attention& a) {
  if (s.keys_sent == key_form::expanded) {
    return caches_latents(a) && s.ulysses > 1
               ? "exchanges heads of what is cached as latents: send latents"
               : "";
  }
  if (a.latent_rank == 0) return "has no latents to send: expected a model with latent attention";
  if (s.parts > 1) return "sends latents once, not by parts of the heads";
  return sends_keys(s, a) ? "" : "sends no keys";
}

std::string key_refusal(const strategy& s, const attention& a) {
  if (!a.prefixes.empty() && !find_algorithm(s.schedule).whole_queries)
    return "has a cache of one length (of several: schedules that decode, such as helix)";
  if (!find_algorithm(s.schedule).for_windows) return "";
  if (a.window == 0) return "computes sliding windows only";
  if (a.prefix > 0) return "has no cached prefix";
  if (a.kept_first > 0 && !a.documents.empty()) return "keeps first tokens of one document only";
  if (a.kept_first > a.sequence / std::max(1, s.rows))
    return "keeps no more first tokens than a rank has";
  return s.tokens == token_layout::contiguous ? "" : "has consecutive tokens on each rank only";
}

}  // namespace

std::string refusal(const strategy& s, const attention& a) {
  const auto& chosen = find_algorithm(s.schedule);
  if (auto reason = head_refusal(s, a, chosen.heads); !reason.empty()) return reason;
  if (s.order == kv_order::transposed) {
    if (!chosen.transposes) return "keeps keys in the direct order";
    if (s.rows != s.cols) return "needs a square grid for the transposed K/V order";
  }
  if (auto reason = key_refusal(s, a); !reason.empty()) return reason;
  if (auto reason = chosen.refusal ? chosen.refusal(s, a) : ""; !reason.empty()) return reason;
  return latent_refusal(s, a);
}

bool is_searched(const algorithm& a, pass_kind pass, bool more_keys, bool has_windows) {
  return (!a.whole_queries || pass == pass_kind::forward) && (more_keys || !a.for_more_keys) &&
         (has_windows || !a.for_windows) && !a.found_by_search;
}

bool has_pass(const strategy& s, pass_kind pass) {
  return pass == pass_kind::forward ||
         (!find_algorithm(s.schedule).whole_queries && s.keys_sent == key_form::expanded);
}

void require_pass(const strategy& s, pass_kind pass) {
  if (has_pass(s, pass)) return;
  throw forward_only(pass, s.keys_sent == key_form::latent
                               ? " with latents sent"
                               : fmt::format(": {} decodes", s.schedule));
}

std::vector<int> ulysses_degrees(const strategy& s, const attention& a, int ranks) {
  const auto kind = find_algorithm(s.schedule).heads;
  std::vector<int> result;
  for (int degree = 1; degree <= ranks; ++degree) {
    if (ranks % degree != 0 || (kind == algorithm::exchange::all_ranks && degree < ranks)) continue;
    if (head_refusal(with_degree(s, degree), a, kind).empty()) result.push_back(degree);
  }
  return result;
}

namespace {

/// Levels are a grid: those of keys its rows.
void use_levels(strategy& s) {
  if (s.levels.empty() || s.rows > 0) return;
  s.rows = s.cols = 1;
  for (const auto& one : s.levels)
    (one.kind == level_kind::queries_gather ? s.cols : s.rows) *= one.ranks;
}

}  // namespace

strategy complete(strategy s, const attention& a, int ranks) {
  const auto& chosen = find_algorithm(s.schedule);
  require_tensor_parallel(s, a, ranks);
  if (s.tokens == token_layout::zigzag_stream && a.documents.empty())
    s.tokens = token_layout::zigzag;
  use_levels(s);
  const int places = ranks / s.tensor_parallel;
  if (s.ulysses == 0 && chosen.heads < algorithm::exchange::usual) s.ulysses = 1;
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
    const auto degree =
        std::max(s.ulysses, chosen.heads == algorithm::exchange::all_ranks ? places : 1);
    auto reason = head_refusal(with_degree(s, degree), a, chosen.heads);
    if (reason.empty()) reason = key_refusal(s, a);
    if (reason.empty() && (a.latent_rank == 0 || caches_latents(a)))
      reason = latent_refusal(with_degree(s, degree), a);
    if (reason.empty() && chosen.whole_queries)
      reason = chosen.refusal(on_one_column(s, places), a);
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
  const auto& chosen = find_algorithm(s.schedule);
  auto extents = chosen.extents ? chosen.extents(s) : std::vector{s.rows, s.cols};
  extents.push_back(ranks_per_place(s));
  return rank_grid(extents);
}

schedule make_schedule(const strategy& s, const attention& a, pass_kind pass) {
  require_pass(s, pass);
  const bool one_place = s.rows * s.cols == 1;
  auto program =
      one_place ? one_kernel_call(pass) : find_algorithm(s.schedule).generate(s, a, pass);
  if (s.keys_sent == key_form::latent || caches_latents(a)) {
    const bool only_latents = caches_latents(a) || s.ulysses > 1;
    program = with_latent_keys(std::move(program), s.keys_sent,
                               only_latents ? own_keys::latents : own_keys::made);
  }
  if (a.sinks) program = with_sinks(std::move(program));
  program.name = s.schedule;
  program.whole_queries = find_algorithm(s.schedule).whole_queries;
  program =
      with_tensor_parallelism(with_head_exchange(std::move(program), s.ulysses), s.tensor_parallel);
  program = in_head_parts(std::move(program), s.parts);
  program = with_framework_copies(std::move(program), s.copies, a);
  if (a.latent) program = with_values_in_keys(std::move(program));
  program = with_wire_type(std::move(program), a);
  if (s.launch == launch_order::compute_first) return launched_compute_first(std::move(program));
  return program;
}

}  // namespace attnsim
