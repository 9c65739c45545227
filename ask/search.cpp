#include "ask/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "ask/search_log.hpp"
#include "ask/search_moves.hpp"
#include "model/cost/host_time.hpp"
#include "model/error.hpp"
#include "model/limit/limit.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"
#include "model/schedule/schedule_check.hpp"
#include "sim/parallel.hpp"
#include "sim/simulator.hpp"

namespace attnsim {
namespace {

constexpr seconds no_time{std::numeric_limits<double>::infinity()};
constexpr std::size_t generation_size = 32;
constexpr std::size_t seeds_by_estimate = 160;
constexpr double near_enough = 1.01;  ///< of the limit

struct attempt {
  strategy chosen;
  std::string key;
  seconds time = no_time;
};

bool earlier(const attempt& a, const attempt& b) {
  return a.time != b.time ? a.time < b.time : a.key < b.key;
}

class schedule_search {
 public:
  schedule_search(const cluster& c, const search_request& request, const search_progress& progress)
      : c_(c),
        request_(request),
        progress_(progress),
        moves_(c, request.planned.problem, request.planned.ranks),
        log_(request.log, description()) {}

  search_result run() {
    search_result result{.seed = request_.seed};
    result.published = plan(c_, request_.planned).candidates;
    begin(result.published);
    for (std::uint64_t generation = 0; goes_on(); ++generation) {
      if (!evolve(generation)) break;
    }
    result.found = best_of(result.published.front());
    result.evaluated = evaluated_;
    return result;
  }

 private:
  const attention& problem() const { return request_.planned.problem; }

  /// What decides the evaluations: another question must not read this one's log.
  std::string description() const {
    const auto& a = problem();
    return fmt::format("{} {} ranks {} tokens x {} of {} heads {} K/V of {} {} {} {}", c_.name,
                       request_.planned.ranks, a.sequence, a.batch, a.heads, a.kv_heads, a.head_dim,
                       name_of(a.mask), name_of(a.dtype), name_of(request_.planned.pass));
  }

  // --- Evaluation -------------------------------------------------------------------------------

  /// Infinite for what cannot run.
  template <typename Time>
  static seconds unless_refused(Time time) {
    try {
      return time();
    } catch (const infeasible&) {
    } catch (const input_error&) {
    } catch (const std::invalid_argument&) {  // too many streams
    }
    return no_time;
  }

  /// Infinite also for what does not fit in memory.
  seconds simulated(const strategy& s) const {
    return unless_refused([&] {
      const auto p = predict(c_, problem(), s, request_.planned.ranks, request_.planned.pass);
      return p.feasible ? p.time : no_time;
    });
  }

  seconds estimated(const strategy& s) const {
    return unless_refused([&] {
      const placed_ranks ranks(c_, place(s.placement, schedule_grid(s), c_));
      seconds time;
      for (const auto pass : passes_of(request_.planned.pass)) {
        const placed_schedule i(ranks, problem(), s, pass);
        time += std::max(estimate(i).time, host_time(i));
      }
      return time;
    });
  }

  seconds limit_of_all(const strategy& s) const {
    seconds time;
    for (const auto pass : passes_of(request_.planned.pass))
      time += limit_of(c_, problem(), s, place(s.placement, schedule_grid(s), c_), pass).time;
    return time;
  }

  /// Those that are new, as far as the budget goes; known ones cost nothing but count.
  void evaluate(std::vector<attempt> all) {
    std::erase_if(all, [&](const attempt& one) { return !seen_.insert(one.key).second; });
    const auto left = request_.evaluations - evaluated_;
    if (all.size() > left) all.resize(left);
    parallel_for_each(all, [&](attempt& one) {
      const auto known = log_.find(one.key);
      one.time = known ? *known : simulated(one.chosen);
      if (!known) log_.add(one.key, one.time);
    });
    std::move(all.begin(), all.end(), std::back_inserter(best_));
    evaluated_ += all.size();
    std::sort(best_.begin(), best_.end(), earlier);
    if (best_.size() > request_.beam) best_.resize(request_.beam);
    if (progress_) progress_(evaluated_, request_.evaluations);
  }

  // --- Generations ------------------------------------------------------------------------------

  attempt attempt_of(strategy s) const {
    s.block_cost = 0;
    auto key = key_of(s);
    return {std::move(s), std::move(key)};
  }

  void begin(const std::vector<prediction>& published) {
    std::vector<attempt> first;
    for (const auto& p : published) {
      if (p.data_parallel > 1 || first.size() >= seeds_by_estimate) continue;
      for (auto& s : moves_.refinements(p.chosen)) first.push_back(attempt_of(std::move(s)));
    }
    std::vector<attempt> composed;
    auto usual = published.front().chosen;
    usual.order = kv_order::direct;
    usual.tensor_parallel = 1;
    if (usual.tokens == token_layout::striped) usual.tokens = token_layout::zigzag;
    for (const auto& s : moves_.compositions(usual)) {
      for (auto& refined : moves_.refinements(s))
        composed.push_back(attempt_of(std::move(refined)));
    }
    parallel_for_each(composed, [&](attempt& one) { one.time = estimated(one.chosen); });
    std::sort(composed.begin(), composed.end(), earlier);
    if (composed.size() > seeds_by_estimate) composed.resize(seeds_by_estimate);
    first.insert(first.end(), composed.begin(), composed.end());
    evaluate(std::move(first));
  }

  bool goes_on() const {
    if (evaluated_ >= request_.evaluations || best_.empty()) return false;
    const auto& first = best_.front();
    return first.time == no_time || first.time > near_enough * limit_of_all(first.chosen);
  }

  /// False when nothing new comes any more.
  bool evolve(std::uint64_t generation) {
    constexpr int tries = 40;
    std::mt19937_64 random(request_.seed * 0x9e3779b97f4a7c15 + generation);
    std::vector<attempt> children;
    std::set<std::string> made;
    for (int i = 0; i < tries * static_cast<int>(generation_size); ++i) {
      if (children.size() == generation_size) break;
      // Of two at random the better: the best have most children.
      const auto parent = std::min(random() % best_.size(), random() % best_.size());
      auto s = moves_.step(best_[parent].chosen, random);
      if (random() % 4 == 0) s = moves_.step(std::move(s), random);
      if (!refusal(s, problem()).empty()) continue;
      auto child = attempt_of(std::move(s));
      if (!seen_.contains(child.key) && made.insert(child.key).second)
        children.push_back(std::move(child));
    }
    if (children.empty()) return false;
    evaluate(std::move(children));
    return true;
  }

  prediction best_of(const prediction& published) {
    if (best_.empty() || best_.front().time >= published.time) return published;
    auto p =
        predict(c_, problem(), best_.front().chosen, request_.planned.ranks, request_.planned.pass);
    constexpr int checked = 256;
    for (const auto pass : passes_of(request_.planned.pass)) {
      if (p.ranks <= checked) check(placed_schedule(c_, problem(), p.chosen, pass).program());
    }
    return p;
  }

  const cluster& c_;
  const search_request& request_;
  const search_progress& progress_;
  search_moves moves_;
  search_log log_;
  std::vector<attempt> best_;   ///< at most `beam`
  std::set<std::string> seen_;  ///< keys
  std::size_t evaluated_ = 0;
};

}  // namespace

const std::vector<std::string_view>& fields_left_to_search() {
  static const std::vector<std::string_view> names{"pad",     "schedule",      "kv-order", "grid",
                                                   "ulysses", "placement",     "levels",   "parts",
                                                   "shares",  "schedule-file", "by"};
  return names;
}

search_result search_schedules(const cluster& c, const search_request& request,
                               const search_progress& progress) {
  return schedule_search(c, request, progress).run();
}

}  // namespace attnsim
