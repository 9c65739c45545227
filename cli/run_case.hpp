// One line of a file of cases (attnsim validate --cases): the flags of a workload and a strategy.
#pragma once

#include <string>

#include "ask/predict.hpp"
#include "ask/question.hpp"
#include "cli/flags.hpp"

namespace attnsim::cli {

struct case_flags {
  ask::question question;
  std::string kernel = "cpu";
  bool graph = false;

  void add_to(CLI::App&);
  /// The cluster as a measured run finds it: GPUs are idle, and a graph needs no launches by the host.
  cluster as_measured(cluster) const;
};

/// A line's flags; `others` where it says nothing. `where` is for messages.
case_flags read_case(const std::string& where, const std::string& line, case_flags others = {});

/// What a run was asked to do.
struct measured_run {
  cluster on;  ///< as measured
  attention problem;
  strategy chosen;
  pass_kind pass = pass_kind::both;
};
measured_run run_of(const case_flags&, const cluster&, int ranks);

/// The prediction of a measured run, on all devices of the cluster. `where` is for messages.
prediction predict_case(const std::string& where, const std::string& line, const cluster&);

}  // namespace attnsim::cli
