// A schedule in a file, as attnsim search saves it: the fields of a question's strategy that say how attention is distributed.
// Whatever takes a question takes the file (field schedule-file): predict, validate, a sweep's row, Python.
//
//   found: {for: "tree.yaml seq=131072 heads=32", seed: 1, evaluated: 420, time: 1.2 ms, limit: 1.1 ms}   # optional: where from
//   schedule: composed
//   levels: keys-ring:2 queries-gather:4
//   ulysses: 8
//   tokens: zigzag
//   placement: custom:0,1,2,3
//   parts: 4
//   shares: 2*4,1*4
//
// Any field of the group strategy may stand there but schedule-file itself. What is not there stays as it is.
#pragma once

#include <string>
#include <vector>

#include "ask/question.hpp"

namespace attnsim::ask {

/// Where a schedule is from; empty texts are left out.
struct schedule_origin {
  std::string asked;  ///< the question
  std::int64_t seed = 0, evaluated = 0;
  seconds time, limit;
};

/// The fields of a strategy, as a file has them.
std::string schedule_file_of(const strategy&, const schedule_origin&);

}  // namespace attnsim::ask
