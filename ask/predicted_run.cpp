#include "ask/predicted_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ask/fastest_tokens.hpp"
#include "ask/frameworks.hpp"
#include "sim/simulator.hpp"

namespace attnsim::ask {
namespace {

attention problem_on(const question& q, int ranks) {
  return problem_of(q, layout_unit(strategy_of(q, layer_of(q)).tokens, ranks));
}

/// Of a profile that has a framework's name, where the framework cannot run the strategy.
void warn_of_framework(const std::string& name, prediction& p) {
  for (const auto& one : frameworks()) {
    const auto reason = one.name == name ? one.refusal(p.chosen, p.problem, p.pass) : "";
    if (!reason.empty()) p.warnings.push_back(fmt::format("{} {}", name, reason));
  }
}

/// Where nobody says in which order operations are launched, the interval holds both (schedule/launch_order.hpp).
void hold_both_orders(const question& q, prediction& p, shared_work& work) {
  constexpr int few = 64;  // more take long
  if (q.launch || !q.framework.empty() || q.by != prediction_method::simulation || p.ranks > few)
    return;
  auto other = p.chosen;
  other.launch = launch_order::compute_first;
  const auto late = predict_times(p.problem, other, p.ranks, q.pass, q.by, work);
  p.low = std::min(p.low, late.low);
  p.high = std::max(p.high, late.high);
  for (std::size_t i = 0; i < p.passes.size(); ++i) {
    p.passes[i].low = std::min(p.passes[i].low, late.passes[i].low);
    p.passes[i].high = std::max(p.passes[i].high, late.passes[i].high);
  }
}

}  // namespace

predicted_run::predicted_run(const cluster& c, const attention& a, const strategy& s, int ranks,
                             pass_kind pass, prediction_method by, recording keeps,
                             simulation_progress progress)
    : on_(&c), keeps_(keeps), progress_(std::move(progress)) {
  shared_work work(c);
  prediction_ = predict(a, s, ranks, pass, by, simulator(), work);
}

predicted_run::predicted_run(const question& q, const cluster& c, recording keeps,
                             simulation_progress progress)
    : on_(&c), keeps_(keeps), progress_(std::move(progress)) {
  shared_work work(c);
  answer(q, work);
}

predicted_run::predicted_run(const question& q, shared_work& work) : on_(&work.on()) {
  answer(q, work);
}

void predicted_run::answer(const question& q, shared_work& work) {
  const int ranks = ranks_of(q, *on_);
  const auto a = problem_on(q, ranks);
  prediction_ =
      predict(a, with_fastest_tokens(q, a, ranks, work), ranks, q.pass, q.by, simulator(), work);
  warn_of_framework(q.framework, prediction_);
  hold_both_orders(q, prediction_, work);
}

pass_simulator predicted_run::simulator() {
  return [this](const placed_schedule& i) -> const timeline& { return simulate(i); };
}

predicted_run::predicted_run(const cluster& c, attnsim::prediction p, recording keeps)
    : on_(&c), keeps_(keeps), prediction_(std::move(p)) {}

const timeline& predicted_run::simulate(const placed_schedule& i) {
  ++simulations_;
  if (keeps_ == recording::totals) return latest_ = attnsim::simulate(i, {.progress = progress_});
  auto& kept = recorded_[i.program().pass];
  kept.program = i.program();
  kept.times = attnsim::simulate(i, {.record = keeps_ == recording::loads,
                                     .record_slowest = true,
                                     .record_links = keeps_ == recording::loads,
                                     .progress = progress_});
  return kept.times;
}

/// What prediction() did not, or forgot.
void predicted_run::simulate_all() {
  if (keeps_ == recording::totals) keeps_ = recording::loads;
  auto problem = prediction_.problem;
  problem.batch /= prediction_.data_parallel;
  for (const auto& one : prediction_.passes) {
    if (!recorded_.contains(one.pass))
      simulate(placed_schedule(*on_, problem, prediction_.chosen, one.pass));
  }
}

const std::vector<recorded_pass>& predicted_run::passes() {
  if (!passes_.empty()) return passes_;
  simulate_all();
  seconds start;
  for (const auto& one : prediction_.passes) {
    passes_.push_back(recorded_.at(one.pass));
    passes_.back().start = start;
    start += passes_.back().times.duration();
  }
  recorded_.clear();
  return passes_;
}

}  // namespace attnsim::ask
