// The answer to one question, as printed and written by `attnsim predict`: time of a strategy for one attention layer on a
// cluster, what bounds it, and whether it fits. Training (pass both) is the forward pass followed by the backward pass.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ask/shared_work.hpp"
#include "model/cost/analytic.hpp"
#include "model/cost/memory.hpp"
#include "model/cost/placed_schedule.hpp"
#include "model/limit/limit.hpp"
#include "sim/simulator.hpp"
#include "sim/timeline.hpp"

namespace attnsim {

enum class prediction_method { simulation, analytic };
std::string_view name_of(prediction_method);
prediction_method parse_prediction_method(std::string_view);

struct bottleneck {
  std::string kind;  ///< compute, nvlink, pcie, network, latency or host
  std::string name;  ///< of the device, the busiest link or the host
  double share = 0;  ///< of the time in which it is busy
};

/// What no schedule can beat (model/limit/limit.hpp).
struct prediction_limit {
  seconds time;          ///< of all passes
  std::string bound_by;  ///< of the pass whose limit is longest
};

/// The attention kernels of one rank in one pass, as they run with no transfer beside them.
struct kernel_use {
  int calls = 0;
  seconds time;      ///< with what adds their results to earlier ones
  seconds launches;  ///< of the calls
  double share = 0;  ///< their rate over the highest that the kernel reaches on large blocks
};

struct pass_prediction {
  pass_kind pass = pass_kind::forward;
  seconds time;  ///< the longer of the device's, compute and exposed communication, and the host's
  seconds compute;
  seconds exposed_communication;
  seconds computing_elsewhere;  ///< of exposed communication: for a rank that computes longer
  seconds host;                 ///< to launch it all (model/cost/host_time.hpp)
  seconds low, high;  ///< interval of the time that the profile's stated uncertainties give
  byte_count most_bytes_sent;  ///< by any rank
  double mean_bytes_sent = 0;
  memory_use memory;
  kernel_use kernels;  ///< of the rank that ends last
  attnsim::bottleneck bottleneck;
};

struct prediction {
  std::string cluster;
  int ranks = 0;
  prediction_method by = prediction_method::simulation;
  strategy chosen;
  attention problem;  ///< of all data-parallel groups together
  pass_kind pass = pass_kind::both;
  int data_parallel = 1;  ///< groups of ranks that each have their part of the batch
  std::vector<pass_prediction> passes;
  seconds time;
  seconds low, high;  ///< interval that the profile's stated uncertainties give
  seconds compute;
  seconds exposed_communication;
  seconds host;
  byte_count most_bytes_sent;
  double mean_bytes_sent = 0;
  byte_count peak_memory;
  flop_rate rate_per_device;       ///< useful operations over ranks and time
  attnsim::bottleneck bottleneck;  ///< of the longest pass
  prediction_limit limit;
  bool feasible = true;  ///< the peak fits the device's memory
  std::string lacks;     ///< where it does not: "needs 1 TiB of the device's 80 GiB memory"
  std::vector<std::string> warnings;
  std::vector<std::string> warnings_alone;  ///< of them, what a step around this call makes untrue
};

/// How a pass is simulated; the timeline is read before the next call.
using pass_simulator = std::function<const timeline&(const placed_schedule&)>;

/// `s` need not be completed. A pass that runs twice is predicted once. Throws as placed_schedule does.
prediction predict(const cluster&, const attention&, const strategy& s, int ranks, pass_kind pass,
                   prediction_method by = prediction_method::simulation);
prediction predict(const cluster&, const attention&, const strategy& s, int ranks, pass_kind pass,
                   prediction_method by, const pass_simulator&);
/// One of many predictions of one problem, whose limits are kept.
prediction predict(const cluster&, const attention&, const strategy& s, int ranks, pass_kind pass,
                   prediction_method by, known_limits&);
/// One of many on one cluster.
prediction predict(const attention&, const strategy& s, int ranks, pass_kind pass,
                   prediction_method by, shared_work&);
prediction predict(const attention&, const strategy& s, int ranks, pass_kind pass,
                   prediction_method by, const pass_simulator&, shared_work&);
/// The same without limit, rate, memory and warnings: what choosing among strategies takes.
prediction predict_times(const attention&, const strategy& s, int ranks, pass_kind pass,
                         prediction_method by, shared_work&);

/// The largest number of visible pairs, times query heads, that a rank attends to in the forward pass, over the mean.
double work_imbalance(const cluster&, const attention&, const strategy&);

kernel_use kernels_of(const placed_schedule&, int rank);

/// The passes that `pass` stands for.
std::vector<pass_kind> passes_of(pass_kind pass);

/// Useful operations of the whole layer, all ranks together; what is computed again is not.
flop_count useful_operations(const attention&, pass_kind pass);

/// What bounds a run, the host left out: the compute stream if it is busy at least half the time, else the most utilised
/// link, else latency.
bottleneck find_bottleneck(const placed_schedule&, const timeline&);

}  // namespace attnsim
