// One line of a file of cases (attnsim validate --cases): the flags of a workload and a strategy.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ask/part_errors.hpp"
#include "ask/question.hpp"
#include "ask/step_question.hpp"
#include "cli/flags.hpp"
#include "formats/source.hpp"

namespace attnsim::cli {

struct case_flags {
  ask::question question;
  std::string kernel;  ///< what computes; empty: not said
  bool graph = false;
  bool of_layer = false;
  ask::step_question step;  ///< a layer's own fields; those that the question has too are there

  void add_to(CLI::App&);
  void add_layer_to(CLI::App&);
};

/// A line's flags, a layer's where `others` are; `others` where it says nothing. `where` is for messages.
case_flags read_case(const std::string& where, const std::string& line, case_flags others = {});

/// The flags of a run that was traced: `--ranks` too, where it took fewer than the cluster's devices.
case_flags read_traced_case(const std::string& where, const std::string& line);

/// What computed in a run, and what its devices did before.
struct run_setting {
  std::string
      kernel;  ///< of a device profile; another version or its default where it has none of that name
  run_start start = run_start::in_sequence;
};

/// What a run was asked to do.
struct measured_run {
  attention problem;
  strategy chosen;
  pass_kind pass = pass_kind::both;
};
measured_run run_of(const case_flags&, const run_setting&, const cluster&, int ranks);

/// What a layer's run was asked to do, but for its ranks. Throws input_error for fields that a layer does not have.
ask::step_question layer_question(const case_flags&, const std::string& profile_kernel,
                                  const cluster&);

/// Of what attnsim validate --scope layer writes.
inline constexpr auto layer_schema = "attnsim.layer_validation.1";

/// The problem of a case as text, whatever the schedule and grid.
std::string problem_of(const case_flags&);

/// What attnsim validate --cases measured of one case, in one run of it or several.
struct recorded_case {
  std::string where;  ///< FILE:LINE of the first
  std::string line;
  run_setting setting;
  bool of_layer = false;
  std::map<std::string, std::vector<double>> durations;  ///< seconds, by pass
  std::map<std::string, std::map<std::string, double>>
      kinds;  ///< of a layer's pass: seconds, by kind

  void add(const recorded_case& again);
  /// The passes one after the other, by their medians.
  seconds time() const;
};

/// Those of a file that ran. Throws input_error naming file and line.
std::vector<recorded_case> read_recorded_cases(const formats::source& file);

/// A rank's trace of the PyTorch profiler against the predicted timeline of a case, given as its flags. Throws
/// input_error that names --case or the file.
std::vector<compared_point> compare_trace(const formats::source&, const std::string& line,
                                          const cluster&);

}  // namespace attnsim::cli
