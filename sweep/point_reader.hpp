// Points as questions: a key of the specification is a field's name or, by its path, a key of the cluster file.
#pragma once

#include <optional>
#include <string>

#include "ask/question.hpp"
#include "sweep/spec.hpp"

namespace attnsim::sweep {

/// For one thread. Points that follow each other and have the same cluster share its reading.
class point_reader {
 public:
  /// `of` outlives it.
  explicit point_reader(const spec& of) : spec_(of) {}

  /// Throws input_error, which names the specification's file and line, and infeasible.
  prediction predict(const point&);

  /// Throws where predict would, but for running out of memory, in less time.
  void check(const point&);

 private:
  ask::question question_of(const point&);

  const spec& spec_;
  std::string cluster_from_;  ///< the settings that `cluster_` was read with
  std::optional<cluster> cluster_;
};

/// Throws input_error about a value that no point can be read with; one that some can is a matter of those points.
void check(const spec&);

}  // namespace attnsim::sweep
