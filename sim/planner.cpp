#include "sim/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "model/error.hpp"
#include "model/placement.hpp"
#include "model/schedules/schedules.hpp"
#include "sim/parallel.hpp"

namespace attnsim {
namespace {

struct candidate {
  strategy chosen;
  seconds estimate;
  byte_count memory;
  std::optional<prediction> simulated;
};

std::vector<std::string> schedules_of(const plan_request& request) {
  if (!request.schedules.empty()) return request.schedules;
  std::vector<std::string> names;
  for (const auto& a : algorithms()) names.emplace_back(a.name);
  return names;
}

/// The layouts to try: any is as good as another under a full mask. Throws infeasible when the sequence fits none.
std::vector<token_layout> layouts_of(const plan_request& request) {
  std::vector<token_layout> layouts{token_layout::zigzag, token_layout::striped};
  if (request.problem.mask == mask_kind::full) layouts = {token_layout::contiguous};
  if (request.fix_tokens) layouts = {request.fixed.tokens};
  const auto sequence = request.problem.sequence;
  const auto first = layouts.front();
  std::erase_if(layouts, [&](token_layout l) {
    return padded_sequence(sequence, l, request.ranks) != sequence;
  });
  if (layouts.empty()) require_layout(sequence, first, request.ranks);
  return layouts;
}

/// Placements that differ on this grid and cluster.
std::vector<std::string> placements_of(const plan_request& request, const rank_grid& grid,
                                       const cluster& c) {
  if (request.fix_placement) return {request.fixed.placement};
  std::map<std::vector<int>, std::string> distinct;
  for (const auto& name : {"node-major", "column-in-node", "tile-in-node"}) {
    distinct.try_emplace(place(name, grid, c), name);
  }
  std::vector<std::string> result;
  for (const auto& [devices, name] : distinct) result.push_back(name);
  return result;
}

/// The schedule with every Ulysses degree and grid.
std::vector<strategy> grids(const std::string& schedule, const plan_request& request) {
  std::vector<strategy> result;
  auto s = request.fixed;
  s.schedule = schedule;
  const int places = request.ranks / s.tensor_parallel;
  for (const int degree : ulysses_degrees(s, request.problem, places)) {
    if (request.fixed.ulysses != 0 && degree != request.fixed.ulysses) continue;
    s.ulysses = degree;
    if (degree == places && degree > 1 && schedule != "ulysses") continue;
    for (const auto& [rows, cols] : grids_of(places / degree)) {
      if (request.fix_grid && (rows != request.fixed.rows || cols != request.fixed.cols)) continue;
      s.rows = rows;
      s.cols = cols;
      result.push_back(s);
    }
  }
  return result;
}

/// All strategies to estimate; those that an algorithm refuses go to `rejected`.
std::vector<candidate> enumerate(const cluster& c, const plan_request& request,
                                 std::vector<rejection>& rejected) {
  std::vector<candidate> result;
  const auto layouts = layouts_of(request);
  for (const auto& schedule : schedules_of(request)) {
    for (const auto& on_grid : grids(schedule, request)) {
      const rank_grid grid({on_grid.rows, on_grid.cols, ranks_per_place(on_grid)});
      const auto places = placements_of(request, grid, c);
      for (const auto tokens : layouts) {
        for (const auto order : {kv_order::direct, kv_order::transposed}) {
          auto s = on_grid;
          s.tokens = tokens;
          s.order = order;
          if (const auto reason = refusal(s, request.problem); !reason.empty()) {
            if (order == kv_order::direct) rejected.push_back({s, reason});
            continue;
          }
          for (const auto& placement : places) {
            s.placement = placement;
            result.push_back({s, {}, {}, {}});
          }
        }
      }
    }
  }
  return result;
}

void estimate_all(const cluster& c, const plan_request& request, std::vector<candidate>& candidates,
                  const std::function<void(std::size_t)>& done) {
  parallel_for_each(candidates, [&](candidate& one) {
    for (const auto pass : passes_of(request.pass)) {
      const instance i(c, request.problem, one.chosen, pass);
      one.estimate += attnsim::estimate(i).time;
      one.memory = std::max(one.memory, peak_memory(i.work()).peak);
    }
    done(1);
  });
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

/// Keeps what is worth simulating of candidates sorted by estimate.
void keep_promising(std::vector<candidate>& sorted, const plan_request& request) {
  const seconds limit = sorted.front().estimate * request.slack;
  std::map<std::tuple<std::string, int, int>, std::size_t> of_grid;
  std::map<std::string, std::size_t> of_schedule;
  std::size_t kept = 0;
  std::erase_if(sorted, [&](const candidate& one) {
    const auto& s = one.chosen;
    const bool among_grid = ++of_grid[{s.schedule, s.rows, s.ulysses}] <= request.per_grid;
    const bool first_of_schedule = ++of_schedule[one.chosen.schedule] == 1;
    const bool keep =
        first_of_schedule || (among_grid && (one.estimate <= limit || kept < request.least));
    kept += keep;
    return !keep;
  });
}

/// Two names of one thing: attention2d on one column is allgather, mesh's forward pass with one query chunk is ring's.
bool same_result(const prediction& a, const prediction& b) {
  return a.chosen.rows == b.chosen.rows && a.chosen.ulysses == b.chosen.ulysses &&
         a.time == b.time && a.most_bytes_sent == b.most_bytes_sent;
}

bool same_grid(const strategy& a, const strategy& b) {
  return a.schedule == b.schedule && a.rows == b.rows && a.ulysses == b.ulysses;
}

/// The best of each schedule and grid, best first.
std::vector<prediction> best_of_each(std::vector<candidate>& simulated) {
  std::vector<prediction> all;
  for (auto& one : simulated) all.push_back(std::move(*one.simulated));
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& x, const auto& y) { return x.time < y.time; });
  std::vector<prediction> best;
  for (auto& p : all) {
    const bool seen = std::any_of(best.begin(), best.end(), [&](const prediction& b) {
      return same_grid(b.chosen, p.chosen) || same_result(b, p);
    });
    if (!seen) best.push_back(std::move(p));
  }
  return best;
}

}  // namespace

plan_result plan(const cluster& c, const plan_request& request,
                 const std::function<void(double)>& progress) {
  check(request.problem);
  plan_result result;
  auto candidates = enumerate(c, request, result.rejected);
  result.considered = candidates.size();
  std::atomic<std::size_t> finished{0};
  std::mutex printing;
  const auto done = [&](std::size_t n) {
    const auto so_far = finished += n;
    if (!progress) return;
    const std::lock_guard lock(printing);
    progress(
        std::min(1.0, static_cast<double>(so_far) / static_cast<double>(2 * result.considered)));
  };
  estimate_all(c, request, candidates, done);
  auto nearest = candidates;
  drop_unfitting(candidates, c.device.memory, result.rejected);
  if (candidates.empty()) {
    const auto least =
        std::min_element(nearest.begin(), nearest.end(),
                         [](const auto& x, const auto& y) { return x.memory < y.memory; });
    if (least == nearest.end()) throw infeasible("no strategy fits the request");
    throw infeasible(fmt::format("no strategy fits the device's {}; nearest: {} {}x{} needs {}",
                                 to_string(c.device.memory), least->chosen.schedule,
                                 least->chosen.rows, least->chosen.cols, to_string(least->memory)));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& x, const auto& y) { return x.estimate < y.estimate; });
  keep_promising(candidates, request);
  result.simulated = candidates.size();
  parallel_for_each(candidates, [&](candidate& one) {
    one.simulated = predict(c, request.problem, one.chosen, request.ranks, request.pass);
    done(result.considered / candidates.size());
  });
  result.candidates = best_of_each(candidates);
  return result;
}

}  // namespace attnsim
