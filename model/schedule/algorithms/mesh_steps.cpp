#include "model/schedule/algorithms/mesh_steps.hpp"

#include <algorithm>

namespace attnsim {
namespace {

struct tile_size {
  int rows = 0;
  int cols = 0;
  friend bool operator==(const tile_size&, const tile_size&) = default;
};

/// Where a rank stands at the start of a step.
struct progress {
  tile_size held{1, 1};  ///< chunks received
  tile_size computed;    ///< blocks of this rectangle are done
  int outputs = 0;       ///< rows whose result has left
  int key_gradients = 0;
};

/// Queries come before the last keys only if that saves a twentieth: a row that meets its keys in pieces takes more kernel
/// calls and sums more partial results, which the step costs leave out.
constexpr double worth_alternating = 0.95;

class step_search {
 public:
  step_search(tile_size tile, const mesh_costs& costs, bool backward)
      : tile_(tile), costs_(costs), backward_(backward) {}

  std::vector<mesh_step> run() const {
    std::vector<mesh_step> steps;
    progress p;
    while (!finished(p)) {
      mesh_step step;
      take_step(p, choose(p), step);
      steps.push_back(step);
    }
    return steps;
  }

 private:
  bool finished(const progress& p) const {
    return p.computed == tile_ && p.outputs == tile_.rows &&
           (!backward_ || p.key_gradients == tile_.cols);
  }

  bool can_receive(const progress& p, arrival side) const {
    return side == arrival::keys ? p.held.cols < tile_.cols : p.held.rows < tile_.rows;
  }

  arrival first_possible(const progress& p, arrival preferred) const {
    const auto other = preferred == arrival::keys ? arrival::queries : arrival::keys;
    return can_receive(p, preferred) ? preferred : can_receive(p, other) ? other : arrival::none;
  }

  /// Moves `p` one step on, describes it, and returns the step's cost.
  double take_step(progress& p, arrival receives, mesh_step& step) const {
    describe_compute(p, step);
    step.receives = receives;
    double communication = receives == arrival::none   ? 0
                           : receives == arrival::keys ? costs_.keys
                                                       : costs_.queries;
    const int complete_rows = p.computed.cols == tile_.cols ? p.computed.rows : 0;
    const int complete_cols = p.computed.rows == tile_.rows ? p.computed.cols : 0;
    if (p.outputs < complete_rows) {
      step.output = p.outputs++;
      communication += step.output == 0 ? 0 : costs_.output;
    }
    if (backward_ && p.key_gradients < complete_cols) {
      step.key_gradient = p.key_gradients++;
      communication += step.key_gradient == 0 ? 0 : costs_.key_gradient;
    }
    p.computed = p.held;
    if (receives == arrival::keys) ++p.held.cols;
    if (receives == arrival::queries) ++p.held.rows;
    return std::max(communication, costs_.block * step.rows * step.cols);
  }

  /// What the arrival of the step before unlocked.
  static void describe_compute(const progress& p, mesh_step& step) {
    if (p.held == p.computed) return;
    const bool new_column = p.held.cols > p.computed.cols;
    const bool new_row = p.held.rows > p.computed.rows;
    step.row_first = new_row && !new_column ? p.computed.rows : 0;
    step.col_first = new_column && !new_row ? p.computed.cols : 0;
    step.rows = p.held.rows - step.row_first;
    step.cols = p.held.cols - step.col_first;
  }

  double completion(progress p, arrival next, arrival preferred) const {
    mesh_step ignored;
    double cost = take_step(p, next, ignored);
    while (!finished(p)) cost += take_step(p, first_possible(p, preferred), ignored = {});
    return cost;
  }

  arrival choose(const progress& p) const {
    if (!can_receive(p, arrival::keys) || !can_receive(p, arrival::queries)) {
      return first_possible(p, arrival::keys);
    }
    const auto best = [&](arrival next) {
      return std::min(completion(p, next, arrival::keys), completion(p, next, arrival::queries));
    };
    const double keys = best(arrival::keys), queries = best(arrival::queries);
    return queries < keys * worth_alternating ? arrival::queries : arrival::keys;
  }

  tile_size tile_;
  mesh_costs costs_;
  bool backward_;
};

}  // namespace

std::vector<mesh_step> mesh_steps(int a, int b, const mesh_costs& costs, bool backward) {
  return step_search({a, b}, costs, backward).run();
}

}  // namespace attnsim
