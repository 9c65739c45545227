#include "ask/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>

#include "model/cost/analytic.hpp"
#include "model/cost/bound.hpp"
#include "model/cost/host_time.hpp"
#include "model/cost/volume.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"
#include "sim/parallel.hpp"

namespace attnsim {
namespace {

constexpr seconds never{std::numeric_limits<double>::infinity()};
constexpr int few_ranks = 256;  ///< a simulation takes no time to speak of

struct candidate {
  strategy chosen;
  int data_parallel = 1;
  seconds bound;
  seconds bound_of_others;  ///< the least in other layouts; never: there are none
  seconds computation;      ///< of its program; 0: not worked out
  seconds estimate;
  byte_count memory;
  bool in_detail = true;  ///< simulated, else by the closed form
  std::optional<prediction> predicted;
};

/// The problem of one data-parallel group.
attention part_of_batch(attention a, int data_parallel) {
  a.batch /= data_parallel;
  return a;
}

plan_request in_groups(plan_request r, int data_parallel) {
  r.problem = part_of_batch(r.problem, data_parallel);
  r.ranks /= data_parallel;
  return r;
}

/// Into how many groups a batch can be split over the ranks.
std::vector<int> group_counts(const plan_request& r) {
  std::vector<int> counts;
  const auto places = r.ranks / r.fixed.tensor_parallel;
  for (const int n : divisors_of(places)) {
    if (r.problem.batch % n == 0 && (n == 1 || r.problem.prefixes.empty())) counts.push_back(n);
  }
  return counts;
}

std::vector<std::string> schedules_of(const plan_request& request) {
  if (!request.schedules.empty()) return request.schedules;
  std::vector<std::string> names;
  const bool more_keys = request.problem.tokens(token_side::keys) > request.problem.sequence;
  const bool has_window = request.problem.window > 0;
  for (const auto& a : algorithms()) {
    if (is_searched(a, request.pass, more_keys, has_window)) names.push_back(a.name);
  }
  return names;
}

int places_of(const plan_request& request) {
  return request.ranks / request.fixed.tensor_parallel;
}

/// The layouts to try, whether the sequence fits them or not: any is as good as another under a full mask.
std::vector<token_layout> wanted_layouts(const plan_request& request) {
  std::vector<token_layout> layouts{token_layout::zigzag, token_layout::striped};
  if (!request.problem.documents.empty())
    layouts.insert(layouts.begin() + 1, token_layout::zigzag_stream);
  if (request.problem.mask == mask_kind::full) layouts = {token_layout::contiguous};
  if (request.fix_tokens) layouts = {request.fixed.tokens};
  return layouts;
}

/// Those that the sequence fits; whole queries go with any.
std::vector<token_layout> layouts_of(const plan_request& request, const algorithm& of) {
  auto layouts = wanted_layouts(request);
  if (of.for_windows && !request.fix_tokens) layouts = {of.tokens};
  if (of.whole_queries) return {request.fix_tokens ? request.fixed.tokens : of.tokens};
  std::erase_if(layouts, [&](token_layout l) {
    return !fits_layout(request.problem, l, places_of(request));
  });
  return layouts;
}

void require_some_layout(const plan_request& request) {
  const auto& a = request.problem;
  const auto wanted = wanted_layouts(request);
  const auto nearest =
      a.documents.empty() ? nearest_layout(a, wanted, places_of(request)) : wanted.front();
  require_layout(a, nearest, places_of(request));
}

/// Why the sequence fits no layout.
std::string layout_refusal(const plan_request& request) {
  try {
    require_some_layout(request);
  } catch (const infeasible& e) {
    return e.what();
  }
  return "";
}

/// Placements that differ on this grid and cluster. Of tensor-parallel ranks, whose traffic is not modelled, none spreads
/// over nodes.
std::vector<std::string> placements_of(const plan_request& request, const rank_grid& grid,
                                       const cluster& c) {
  if (request.fix_placement) return {request.fixed.placement};
  auto names = distinct_placements(grid, c);
  if (request.fixed.tensor_parallel > 1) std::erase(names, "rails");
  return names;
}

/// Where queries are whole, heads are shared out by tensor parallelism, in every degree that is not asked for.
std::vector<int> tensor_parallel_degrees(const algorithm& of, const plan_request& request) {
  if (!of.whole_queries || request.fix_tensor_parallel) return {request.fixed.tensor_parallel};
  std::vector<int> degrees;
  for (const int n : divisors_of(request.ranks)) {
    if (request.problem.kv_heads % n == 0) degrees.push_back(n);
  }
  return degrees;
}

/// The schedule with every Ulysses degree and grid.
std::vector<strategy> grids(const std::string& schedule, const plan_request& request,
                            int tensor_parallel) {
  std::vector<strategy> result;
  auto s = request.fixed;
  s.schedule = schedule;
  s.tensor_parallel = tensor_parallel;
  const bool always_one_place = find_algorithm(schedule).heads == algorithm::exchange::all_ranks;
  const int places = request.ranks / s.tensor_parallel;
  for (const int degree : ulysses_degrees(s, request.problem, places)) {
    if (request.fixed.ulysses != 0 && degree != request.fixed.ulysses) continue;
    s.ulysses = degree;
    if (degree == places && degree > 1 && !always_one_place) continue;
    for (const auto& [rows, cols] : grids_of(places / degree)) {
      if (request.fix_grid && (rows != request.fixed.rows || cols != request.fixed.cols)) continue;
      s.rows = rows;
      s.cols = cols;
      result.push_back(s);
    }
  }
  return result;
}

/// The layout to estimate first: the paper's order of Attention2D is made for striped tokens.
token_layout first_layout(const std::vector<token_layout>& layouts, kv_order order) {
  const auto striped = std::find(layouts.begin(), layouts.end(), token_layout::striped);
  return order == kv_order::transposed && striped != layouts.end() ? *striped : layouts.front();
}

/// K/V orders, and what travels of keys and values: latents where there are any and nobody asks for something else.
std::vector<std::pair<kv_order, key_form>> forms_of(const plan_request& request) {
  std::vector<key_form> keys{request.fixed.keys_sent};
  const bool has_latents = request.problem.latent_rank > 0 && request.pass == pass_kind::forward;
  if (has_latents && !request.fix_keys_sent) keys = {key_form::expanded, key_form::latent};
  std::vector<std::pair<kv_order, key_form>> forms;
  for (const auto form : keys) {
    for (const auto order : {kv_order::direct, kv_order::transposed})
      forms.emplace_back(order, form);
  }
  return forms;
}

/// Those of a schedule, but for the other layouts; those that it refuses go to `rejected`.
void enumerate(std::vector<candidate>& result, const cluster& c, const plan_request& request,
               int data_parallel, const algorithm& of, std::vector<rejection>& rejected) {
  const auto layouts = layouts_of(request, of);
  for (const int degree : tensor_parallel_degrees(of, request)) {
    for (auto s : grids(of.name, request, degree)) {
      std::vector<std::string> places;
      for (const auto& [order, keys] : forms_of(request)) {
        s.order = order;
        s.keys_sent = keys;
        s.tokens = first_layout(layouts, order);
        if (const auto reason = refusal(s, request.problem); !reason.empty()) {
          const bool asked = request.fix_keys_sent || keys == key_form::expanded;
          if (order == kv_order::direct && asked) rejected.push_back({s, reason});
          continue;
        }
        if (places.empty()) places = placements_of(request, schedule_grid(s), c);
        for (const auto& placement : places) {
          s.placement = placement;
          result.push_back({.chosen = s, .data_parallel = data_parallel});
        }
      }
    }
  }
}

/// All strategies. Throws infeasible when no schedule has a layout that the sequence fits.
void enumerate(std::vector<candidate>& result, const cluster& c, const plan_request& request,
               int data_parallel, std::vector<rejection>& rejected) {
  bool fits = false;
  const auto refusal_of_layouts = layout_refusal(request);
  for (const auto& schedule : schedules_of(request)) {
    const auto& of = find_algorithm(schedule);
    auto s = request.fixed;
    s.schedule = schedule;
    require_pass(s, request.pass);
    if (layouts_of(request, of).empty()) {
      rejected.push_back({s, refusal_of_layouts});
      continue;
    }
    fits = true;
    enumerate(result, c, request, data_parallel, of, rejected);
  }
  if (!fits) require_some_layout(request);
}

/// The candidates that are worth it in the layouts that they were not estimated in. Lowers `left_out` to the least bound of
/// the others in these layouts.
std::vector<candidate> other_layouts(const std::vector<candidate>& estimated,
                                     const plan_request& request, seconds& left_out) {
  auto best = estimated.front().estimate;
  std::map<std::string, seconds> of_schedule;
  for (const auto& one : estimated) {
    best = std::min(best, one.estimate);
    const auto [known, is_new] = of_schedule.try_emplace(one.chosen.schedule, one.estimate);
    if (!is_new) known->second = std::min(known->second, one.estimate);
  }
  std::vector<candidate> result;
  for (const auto& one : estimated) {
    const bool close = one.estimate <= best * request.layout_slack ||
                       one.estimate <= of_schedule.at(one.chosen.schedule);
    const bool laid_out = one.chosen.rows * one.chosen.cols > 1;
    if (!close) left_out = std::min(left_out, one.bound_of_others);
    if (!close || !laid_out) continue;
    for (const auto tokens :
         layouts_of(in_groups(request, one.data_parallel), find_algorithm(one.chosen.schedule))) {
      if (tokens == one.chosen.tokens) continue;
      result.push_back({.chosen = one.chosen, .data_parallel = one.data_parallel});
      result.back().chosen.tokens = tokens;
    }
  }
  return result;
}

/// A schedule on a grid: what a plan lists once.
using schedule_on_grid = std::tuple<std::string, int, int, int, int>;
schedule_on_grid on_its_grid(const strategy& s) {
  return {s.schedule, s.rows, s.cols, s.ulysses, s.tensor_parallel};
}

/// The least feasible estimates so far, of all strategies, of each schedule and of each on its grid.
class best_estimates {
 public:
  void add(const candidate& one) {
    const std::lock_guard lock(guard_);
    best_ = std::min(best_, one.estimate);
    const auto& s = one.chosen;
    auto& of_schedule = of_schedule_.try_emplace(s.schedule, never).first->second;
    of_schedule = std::min(of_schedule, one.estimate);
    auto& of_grid = of_grid_.try_emplace(on_its_grid(s), never).first->second;
    of_grid = std::min(of_grid, one.estimate);
  }

  /// What takes at least `bound` is neither within the layouts' slack of the best, nor the best of its schedule, nor, by its
  /// grid, among the `least` best.
  bool rules_out(const candidate& one, seconds bound, const plan_request& request) const {
    const std::lock_guard lock(guard_);
    if (bound <= best_ * request.layout_slack) return false;
    const auto known = of_schedule_.find(one.chosen.schedule);
    if (known == of_schedule_.end() || bound < known->second) return false;
    const auto better = std::count_if(of_grid_.begin(), of_grid_.end(),
                                      [&](const auto& grid) { return grid.second <= bound; });
    return static_cast<std::size_t>(better) >= request.least;
  }

 private:
  mutable std::mutex guard_;
  seconds best_ = never;
  std::map<std::string, seconds> of_schedule_;
  std::map<schedule_on_grid, seconds> of_grid_;
};

std::vector<candidate*> pointers_to(std::vector<candidate>& all) {
  std::vector<candidate*> pointers;
  for (auto& one : all) pointers.push_back(&one);
  return pointers;
}

/// Candidates by what `key_of` says of them, in the order of their first.
template <typename Key>
std::vector<std::vector<candidate*>> grouped(const std::vector<candidate*>& all, Key key_of) {
  std::map<decltype(key_of(*all.front())), std::size_t> numbers;
  std::vector<std::vector<candidate*>> groups;
  for (auto* one : all) {
    const auto [number, is_new] = numbers.try_emplace(key_of(*one), groups.size());
    if (is_new) groups.emplace_back();
    groups[number->second].push_back(one);
  }
  return groups;
}

seconds bound_of(const time_bound& bound, const strategy& s, ranks_on_nodes& ranks,
                 pass_kind pass) {
  seconds all;
  for (const auto one : passes_of(pass)) all += bound.of(s, ranks, one);
  return all;
}

seconds bound_of_other_layouts(const time_bound& bound, const candidate& one, ranks_on_nodes& ranks,
                               const plan_request& request) {
  auto least = never;
  auto s = one.chosen;
  if (s.rows * s.cols == 1) return least;
  for (const auto tokens :
       layouts_of(in_groups(request, one.data_parallel), find_algorithm(s.schedule))) {
    if (tokens == one.chosen.tokens) continue;
    s.tokens = tokens;
    least = std::min(least, bound_of(bound, s, ranks, request.pass));
  }
  return least;
}

/// Sets the bounds and sorts by them.
void bound_all(const cluster& c, const plan_request& request, std::vector<candidate>& candidates) {
  std::map<int, time_bound> bounds;
  for (const int n : group_counts(request))
    bounds.try_emplace(n, c, part_of_batch(request.problem, n));
  auto groups = grouped(pointers_to(candidates), [](const candidate& one) {
    return std::pair(whole_grid(one.chosen).extents(), one.chosen.placement);
  });
  parallel_for_each(groups, [&](const std::vector<candidate*>& group) {
    const auto& s = group.front()->chosen;
    ranks_on_nodes ranks(c.network, whole_grid(s), place(s.placement, schedule_grid(s), c));
    for (auto* one : group) {
      const auto& bound = bounds.at(one->data_parallel);
      one->bound = bound_of(bound, one->chosen, ranks, request.pass);
      one->bound_of_others = bound_of_other_layouts(bound, *one, ranks, request);
    }
  });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& x, const auto& y) { return x.bound < y.bound; });
}

/// On ranks of the same grid, so that those that place them alike share the patterns of communication.
std::vector<std::vector<candidate*>> on_one_grid(const std::vector<candidate*>& all) {
  return grouped(all, [](const candidate& one) { return schedule_grid(one.chosen).extents(); });
}

/// Whose strategies differ in their placement alone: of what a request leaves open, all else.
std::vector<std::vector<candidate*>> of_one_program(const std::vector<candidate*>& all) {
  return grouped(all, [](const candidate& one) {
    const auto& s = one.chosen;
    return std::tuple(s.schedule, s.rows, s.cols, s.ulysses, s.tensor_parallel, s.tokens, s.order,
                      s.keys_sent, one.data_parallel);
  });
}

/// Estimates candidates of one grid. What they have in common is worked out once.
class grid_estimates {
 public:
  grid_estimates(const cluster& c, const plan_request& request)
      : c_(c), request_(request), fastest_(c.fastest_device()) {}

  /// Candidates of another program follow.
  void forget_programs() { programs_.clear(); }

  /// On the fastest device.
  seconds computation_of(const candidate& one) {
    const auto problem = part_of_batch(request_.problem, one.data_parallel);
    seconds all;
    for (const auto pass : passes_of(request_.pass)) {
      const auto s = informed(one.chosen, c_, problem, pass);
      all += program_of(s, problem, pass).computation / fastest_;
    }
    return all;
  }

  void estimate(candidate& one) {
    const auto problem = part_of_batch(request_.problem, one.data_parallel);
    const auto& ranks = ranks_of(one.chosen);
    for (const auto pass : passes_of(request_.pass)) {
      const auto s = informed(one.chosen, c_, problem, pass);
      auto& known = program_of(s, problem, pass);
      const placed_schedule i(ranks, s, known.priced);
      one.estimate += std::max(attnsim::estimate(i).time, host_time(i));
      if (known.memory == byte_count{}) known.memory = peak_memory(known.priced->work()).peak;
      one.memory = std::max(one.memory, known.memory);
    }
  }

 private:
  struct program {
    std::shared_ptr<const priced_schedule> priced;
    seconds computation;  ///< on a device of speed 1
    byte_count memory;    ///< 0: not worked out
  };

  const placed_ranks& ranks_of(const strategy& s) {
    const auto known = ranks_.find(s.placement);
    if (known != ranks_.end()) return known->second;
    return ranks_.try_emplace(s.placement, c_, place(s.placement, schedule_grid(s), c_))
        .first->second;
  }

  program& program_of(const strategy& s, const attention& a, pass_kind pass) {
    auto& known = programs_[{pass, s.block_cost}];
    if (!known.priced) {
      known.priced =
          std::make_shared<const priced_schedule>(c_.device, a, s, make_schedule(s, a, pass));
      known.computation = computation(*known.priced);
    }
    return known;
  }

  const cluster& c_;
  const plan_request& request_;
  const double fastest_;                                      ///< device speed
  std::map<std::string, placed_ranks> ranks_;                 ///< by placement
  std::map<std::pair<pass_kind, double>, program> programs_;  ///< by pass and cost of a block
};

/// Estimates what neither its bound nor its computation rules out and drops the rest, of which it returns the least bound.
seconds estimate_all(const cluster& c, const plan_request& request,
                     std::vector<candidate>& candidates, best_estimates& best,
                     const std::function<void()>& done) {
  bound_all(c, request, candidates);
  auto groups = on_one_grid(pointers_to(candidates));
  // Small grids first: few steps, so the best are likely among them and rule out most of the others.
  std::stable_sort(groups.begin(), groups.end(), [](const auto& x, const auto& y) {
    const auto size = [](const strategy& s) { return s.rows + s.cols; };
    return size(x.front()->chosen) < size(y.front()->chosen);
  });
  parallel_for_each(groups, [&](const std::vector<candidate*>& group) {
    grid_estimates estimates(c, request);
    for (const auto& alike : of_one_program(group)) {
      estimates.forget_programs();
      for (auto* one : alike) {
        done();
        if (best.rules_out(*one, one->bound, request)) continue;
        one->computation = estimates.computation_of(*one);
        if (best.rules_out(*one, one->computation, request)) continue;
        estimates.estimate(*one);
        if (one->memory <= c.device.memory) best.add(*one);
      }
    }
  });
  // The order in which threads run decides what was estimated needlessly, but not what is left.
  auto dropped = never;
  std::erase_if(candidates, [&](const candidate& one) {
    const bool by_bound = best.rules_out(one, one.bound, request);
    const bool by_computation = best.rules_out(one, one.computation, request);
    if (by_bound || by_computation) {
      const auto least = by_bound ? one.bound : std::max(one.bound, one.computation);
      dropped = std::min({dropped, least, one.bound_of_others});
    }
    return by_bound || by_computation;
  });
  return dropped;
}

/// Moves what does not fit in memory to `rejected`.
void drop_unfitting(std::vector<candidate>& candidates, byte_count memory,
                    std::vector<rejection>& rejected) {
  for (const auto& one : candidates) {
    if (one.memory > memory) {
      rejected.push_back({one.chosen, fmt::format("needs {} of {} memory", to_string(one.memory),
                                                  to_string(memory))});
    }
  }
  std::erase_if(candidates, [&](const candidate& one) { return one.memory > memory; });
}

/// Narrower on many ranks, where a simulation takes seconds.
plan_request affordable(plan_request request) {
  constexpr int many_ranks = 1024;
  if (request.ranks <= many_ranks) return request;
  request.layout_slack = std::min(request.layout_slack, 1.1);
  request.per_grid = 1;
  request.most =
      std::max(request.least, request.most * many_ranks / static_cast<std::size_t>(request.ranks));
  return request;
}

/// Keeps what is worth predicting of candidates sorted by estimate. Returns the least bound of what is not simulated.
seconds keep_promising(std::vector<candidate>& sorted, const plan_request& request) {
  const seconds limit = sorted.front().estimate * request.slack;
  std::map<schedule_on_grid, std::size_t> of_grid;
  std::map<std::string, std::size_t> of_schedule;
  std::map<std::pair<int, int>, std::size_t> of_one_place;
  std::size_t kept = 0;
  auto least = never;
  std::erase_if(sorted, [&](candidate& one) {
    const auto& s = one.chosen;
    const bool among_grid = ++of_grid[on_its_grid(s)] <= request.per_grid;
    const bool first_of_schedule = ++of_schedule[one.chosen.schedule] == 1;
    const bool close = one.estimate <= limit && kept < request.most;
    const bool keep = first_of_schedule || (among_grid && (close || kept < request.least));
    const bool one_call = s.rows * s.cols * s.ulysses == 1;  // whatever the schedule
    kept += keep && (!one_call || ++of_one_place[{one.data_parallel, s.tensor_parallel}] == 1);
    one.in_detail = close || request.ranks <= few_ranks;
    if (!keep || !one.in_detail) least = std::min(least, one.bound);
    return !keep;
  });
  return least;
}

/// Two names of one thing: attention2d on one column is allgather, mesh's forward pass with one query chunk is ring's.
bool same_result(const prediction& a, const prediction& b) {
  return a.chosen.rows == b.chosen.rows && a.chosen.ulysses == b.chosen.ulysses &&
         a.time == b.time && a.most_bytes_sent == b.most_bytes_sent;
}

prediction predicted(const cluster& c, const plan_request& request, const candidate& one,
                     known_limits& limits) {
  auto p =
      predict(c, part_of_batch(request.problem, one.data_parallel), one.chosen,
              request.ranks / one.data_parallel, request.pass,
              one.in_detail ? prediction_method::simulation : prediction_method::analytic, limits);
  p.data_parallel = one.data_parallel;
  p.problem = request.problem;
  p.ranks = request.ranks;
  return p;
}

[[noreturn]] void refuse(const cluster& c, const std::vector<candidate>& tried) {
  const auto least = std::min_element(
      tried.begin(), tried.end(), [](const auto& x, const auto& y) { return x.memory < y.memory; });
  if (least == tried.end()) throw infeasible("no strategy fits the request");
  throw infeasible(fmt::format("no strategy fits the device's {}; nearest: {} {}x{} needs {}",
                               to_string(c.device.memory), least->chosen.schedule,
                               least->chosen.rows, least->chosen.cols, to_string(least->memory)));
}

class search {
 public:
  search(const cluster& c, const plan_request& request, const plan_progress& progress,
         const plan_preview& preview)
      : c_(c), request_(affordable(request)), progress_(progress), preview_(preview) {}

  plan_result run() {
    std::vector<candidate> candidates;
    for (const int n : group_counts(request_))
      enumerate(candidates, c_, in_groups(request_, n), n, result_.rejected);
    estimate(candidates);
    if (!candidates.empty()) {
      auto more = other_layouts(candidates, request_, others_at_least_);
      estimate(more);
      candidates.insert(candidates.end(), more.begin(), more.end());
    }
    const auto tried = candidates;
    drop_unfitting(candidates, c_.device.memory, result_.rejected);
    if (candidates.empty()) refuse(c_, tried);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& x, const auto& y) { return x.estimate < y.estimate; });
    others_at_least_ = std::min(others_at_least_, keep_promising(candidates, request_));
    result_.simulated = static_cast<std::size_t>(std::count_if(
        candidates.begin(), candidates.end(), [](const auto& one) { return one.in_detail; }));
    expected_ = finished_ + candidates.size();
    std::map<int, known_limits> limits;
    for (const auto& one : candidates) {
      const int n = one.data_parallel;
      limits.try_emplace(n, c_, part_of_batch(request_.problem, n));
    }
    parallel_for_each(candidates, [&](candidate& one) {
      one.predicted = predicted(c_, request_, one, limits.at(one.data_parallel));
      show(*one.predicted);
      done();
    });
    std::vector<prediction> all;
    for (auto& one : candidates) all.push_back(std::move(*one.predicted));
    result_.candidates = best_of_each(std::move(all));
    result_.others_at_least = others_at_least_;
    return std::move(result_);
  }

 private:
  void estimate(std::vector<candidate>& candidates) {
    result_.considered += candidates.size();
    expected_ = 2 * result_.considered;
    const auto dropped = estimate_all(c_, request_, candidates, best_, [this] { done(); });
    others_at_least_ = std::min(others_at_least_, dropped);
    result_.estimated += candidates.size();
  }

  void show(const prediction& p) {
    if (!preview_) return;
    const std::lock_guard lock(printing_);
    preview_(p);
  }

  void done() {
    const auto so_far = ++finished_;
    if (!progress_) return;
    const std::lock_guard lock(printing_);
    progress_(std::min(so_far, expected_), expected_);
  }

  const cluster& c_;
  const plan_request request_;
  const plan_progress& progress_;
  const plan_preview& preview_;
  plan_result result_;
  best_estimates best_;
  seconds others_at_least_ = never;
  std::size_t expected_ = 1;
  std::atomic<std::size_t> finished_{0};
  std::mutex printing_;
};

/// One rank, one node and, where that takes no longer than the plan itself may, half the ranks.
std::set<int> fewer_ranks(const cluster& c, const plan_request& request) {
  constexpr int most = 1024;
  std::set<int> counts;
  const int least = request.fixed.tensor_parallel;
  for (const int n : {least, c.devices_per_node, request.ranks <= most ? request.ranks / 2 : 0}) {
    if (n >= least && n < request.ranks && n % least == 0) counts.insert(n);
  }
  return counts;
}

/// Those to try on fewer ranks, all being none; of many ranks only the best of the result.
std::vector<std::string> schedules_on_fewer(const plan_result& result,
                                            const plan_request& request) {
  constexpr std::size_t few = 3;
  if (request.ranks <= few_ranks) return {};
  std::vector<std::string> names;
  for (const auto& p : result.candidates) {
    if (std::find(names.begin(), names.end(), p.chosen.schedule) == names.end())
      names.push_back(p.chosen.schedule);
    if (names.size() == few) break;
  }
  return names;
}

/// The best of these schedules, or of all, on `ranks` ranks, if anything fits; the shortest search that finds it.
std::optional<prediction> best_on(const cluster& c, plan_request request, int ranks,
                                  std::vector<std::string> schedules) {
  request.ranks = ranks;
  request.fix_grid = false;
  request.fixed.ulysses = 0;
  request.schedules = std::move(schedules);
  request.least = request.per_grid = 1;
  request.slack = request.layout_slack = 1.05;
  try {
    return search(c, request, {}, {}).run().candidates.front();
  } catch (const infeasible&) {
    return {};
  }
}

void warn_of_fewer(plan_result& result) {
  for (auto& p : result.candidates) {
    for (const auto& fewer : result.on_fewer) {
      if (fewer.time > p.time) continue;
      p.warnings.push_back(fewer.ranks == 1
                               ? fmt::format("not faster than one rank: {}", to_string(fewer.time))
                               : fmt::format("not faster than {} ranks: {} with {}", fewer.ranks,
                                             to_string(fewer.time), fewer.chosen.schedule));
      break;
    }
  }
}

}  // namespace

plan_request exhaustive(plan_request request) {
  request.slack = request.layout_slack = std::numeric_limits<double>::infinity();
  request.per_grid = request.most = std::numeric_limits<std::size_t>::max();
  return request;
}

std::vector<prediction> best_of_each(std::vector<prediction> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& x, const auto& y) { return x.time < y.time; });
  std::vector<prediction> best;
  for (auto& p : all) {
    const bool seen = std::any_of(best.begin(), best.end(), [&](const prediction& b) {
      return on_its_grid(b.chosen) == on_its_grid(p.chosen) || same_result(b, p);
    });
    if (!seen) best.push_back(std::move(p));
  }
  return best;
}

plan_result plan(const cluster& c, const plan_request& request, const plan_progress& progress,
                 const plan_preview& preview) {
  check(request.problem);
  check(request.problem, request.pass);
  require_peak(c.device, request.problem.dtype);
  require_tensor_parallel(request.fixed, request.problem, request.ranks);
  auto result = search(c, request, progress, preview).run();
  for (const int n : fewer_ranks(c, request)) {
    if (auto best = best_on(c, request, n, schedules_on_fewer(result, request)))
      result.on_fewer.push_back(std::move(*best));
  }
  warn_of_fewer(result);
  result.problem = request.problem;
  result.pass = request.pass;
  return result;
}

}  // namespace attnsim
