#include "ask/grid_map.hpp"

#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim::ask {
namespace {

/// None where the schedule refuses, or it does not fit.
std::optional<prediction> predict_on(question q, const cluster& c, int ranks) {
  try {
    const auto problem = problem_of(q, std::int64_t{2} * ranks);
    auto p =
        predict(c, problem, strategy_of(q, problem), ranks, q.pass, prediction_method::analytic);
    if (p.feasible) return p;
  } catch (const infeasible&) {
  } catch (const input_error&) {
  }
  return std::nullopt;
}

std::optional<prediction> best_on(question q, const cluster& c, int ranks,
                                  const std::vector<std::string>& schedules) {
  std::optional<prediction> best;
  for (const auto& name : schedules) {
    q.schedule = name;
    auto p = predict_on(q, c, ranks);
    if (p && (!best || p->time < best->time)) best = std::move(p);
  }
  return best;
}

}  // namespace

const prediction* grid_map::fastest() const {
  const prediction* fastest = nullptr;
  for (const auto& row : best) {
    for (const auto& cell : row) {
      if (cell && (fastest == nullptr || cell->time < fastest->time)) fastest = &*cell;
    }
  }
  return fastest;
}

grid_map map_grids(const question& asked_for, const cluster& c,
                   const std::vector<std::string>& schedules, const plan_progress& progress) {
  const int ranks = ranks_of(asked_for, c);
  problem_of(asked_for, std::int64_t{2} * ranks);
  const auto names = schedules.empty() ? names_in(algorithms()) : schedules;
  grid_map map{.sides = divisors_of(ranks)};
  std::size_t done = 0;
  for (const int rows : map.sides) {
    auto& row = map.best.emplace_back();
    for (const int cols : map.sides) {
      auto& cell = row.emplace_back();
      if (progress) progress(++done, map.sides.size() * map.sides.size());
      if (cols > ranks / rows || ranks / rows % cols != 0) continue;
      auto q = asked_for;
      q.grid = {rows, cols};
      q.ulysses = ranks / rows / cols;
      cell = best_on(q, c, ranks, names);
    }
  }
  return map;
}

}  // namespace attnsim::ask
