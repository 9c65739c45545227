// Runs one layer of a model for real and holds it against the oracle and the step's prediction: `attnsim validate --scope layer`.
//
// Both passes are run again and again, one after the other, each from a common start. Operations follow each other on one stream, so
// what each takes adds up to the pass; as the prediction does, exchanges count with what they wait for.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ask/step.hpp"
#include "validate/compare.hpp"
#include "validate/layer/layer_oracle.hpp"
#include "validate/repeats.hpp"

namespace attnsim::validate {

struct layer_request {
  const cluster& on;
  ask::step_question question;
  std::string kernel;
  std::string transport = "inprocess";  ///< or "mpi", "nccl"
  bool checks = true;                   ///< the numbers; false: times alone, from random inputs
  repeats_wanted repeats;
  std::chrono::duration<double> time_out{60};  ///< of one operation waiting for its peers
};

/// Of the rank that takes longest, in the median run.
struct layer_pass {
  pass_kind pass = pass_kind::forward;
  part_time total;
  std::vector<part_time> parts;       ///< by ask::step_part, those that are there
  std::vector<part_time> operations;  ///< in order; without a prediction of their own
  std::vector<seconds> durations;     ///< of all measured runs
};

struct layer_validation {
  int rank = 0;  ///< of this process; 0 in process
  ask::layer_answer predicted;
  std::vector<layer_pass> passes;  ///< forward and backward
  part_time total;
  bool computed = true;  ///< false: no numbers
  layer_numerics numbers;

  bool passed() const { return !computed || numbers.passed; }
};

/// Throws what ask::layer_of, layer_plan and validate() throw.
layer_validation validate_layer(const layer_request&);
/// The same on a transport that is there already; all its ranks call it.
layer_validation validate_layer(const layer_request&, transport&);

}  // namespace attnsim::validate
