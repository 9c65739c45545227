// A strategy's run as predicted: its figures and, on demand, what happens when in each pass. Whoever asks for numbers, a
// trace or a page, each pass is simulated once.
//
//   predicted_run run(question, cluster, recording::loads);
//   run.prediction().time == run.passes().back().start + run.passes().back().times.duration()
//
// where the host does not bound the time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ask/predict.hpp"
#include "ask/question.hpp"
#include "model/cluster/cluster.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/timeline.hpp"

namespace attnsim::ask {

/// What is kept of a simulation: nothing but its totals; also the intervals of the rank that ends last; of all ranks, and the
/// links' loads over time.
enum class recording { totals, slowest, loads };

/// One pass of a run, with its intervals.
struct recorded_pass {
  std::string run;  ///< "predicted" or "measured", where there are both; else empty
  schedule program;
  timeline times;
  seconds start;  ///< after the run's
};

class predicted_run {
 public:
  /// Predicts, as the functions called so, and keeps what is asked to. Nothing kept, `passes` simulates once more.
  predicted_run(const cluster&, const attention&, const strategy&, int ranks, pass_kind,
                prediction_method, recording = recording::totals, simulation_progress = {});
  predicted_run(const question&, const cluster&, recording = recording::totals,
                simulation_progress = {});
  /// One of many on a cluster; nothing is kept.
  predicted_run(const question&, shared_work&);

  /// Of what is predicted already, such as a plan's candidate: `passes` simulates, and keeps at least the slowest rank's intervals.
  predicted_run(const cluster&, attnsim::prediction, recording = recording::slowest);

  const attnsim::prediction& prediction() const { return prediction_; }

  /// In the order in which they run, by simulation, whatever the prediction is by.
  const std::vector<recorded_pass>& passes();

  /// How many there were so far, one a pass.
  int simulations() const { return simulations_; }

 private:
  void answer(const question&, shared_work&);
  pass_simulator simulator();
  const timeline& simulate(const placed_schedule&);
  void simulate_all();

  const cluster* on_;
  recording keeps_ = recording::totals;
  simulation_progress progress_;
  int simulations_ = 0;
  timeline latest_;  ///< where nothing is kept
  std::map<pass_kind, recorded_pass> recorded_;
  std::vector<recorded_pass> passes_;
  attnsim::prediction prediction_;
};

}  // namespace attnsim::ask
