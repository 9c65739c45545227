// Points as questions: a key of the specification is a field's name or, by its path, a key of the cluster file.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ask/step.hpp"
#include "sweep/spec.hpp"

namespace attnsim::sweep {

/// What all points of a specification ask about.
enum class scope {
  attention,  ///< the fields of ask/question.hpp
  step,       ///< those of ask/step_question.hpp
};

/// The value of the key `scope`; attention where there is none. Throws input_error for another one, or several.
scope scope_of(const spec&);

prediction answer_of(const ask::question&, const cluster&, ask::known_parts&);
ask::step_answer answer_of(const ask::step_question&, const cluster&, ask::known_parts&);

/// For one thread. Points of one cluster share its reading, and what predictions and steps on it have in common, those of one
/// device their schedules, where not too many others lie between them: values of the cluster may be the last key, which changes
/// fastest.
template <typename Question>
class point_reader {
 public:
  using answer = decltype(answer_of(std::declval<const Question&>(), std::declval<const cluster&>(),
                                    std::declval<ask::known_parts&>()));

  /// `of` outlives it. Clusters of at most so many devices altogether are kept.
  explicit point_reader(const spec& of, std::size_t most_devices = 65'536)
      : spec_(of), most_devices_(most_devices) {}

  /// Throws input_error, which names the specification's file and line, and infeasible.
  answer answer_to(const point&);

  /// Throws where answer_to would, but for running out of memory, in less time.
  void check(const point&);

 private:
  struct read_cluster;

  Question question_of(const point&);
  const std::shared_ptr<read_cluster>& cluster_for(const ask::question&,
                                                   const std::string& settings,
                                                   const std::string& settings_of_device);

  const spec& spec_;
  const std::size_t most_devices_;
  known_schedules schedules_;  ///< of all clusters
  std::map<std::string, known_schedules::device>
      profiles_;  ///< by the settings of a cluster that may change its device
  std::map<std::string, std::shared_ptr<read_cluster>>
      clusters_;                           ///< by the settings that they were read with
  std::size_t devices_ = 0;                ///< of all of them
  std::shared_ptr<read_cluster> cluster_;  ///< of the latest question
};

extern template class point_reader<ask::question>;
extern template class point_reader<ask::step_question>;

/// Throws input_error about a value that no point can be read with; one that some can is a matter of those points.
void check(const spec&);

}  // namespace attnsim::sweep
