// Two timelines of one schedule, part by part: what was predicted and what was measured.
//
//   total                  until the last rank's end
//   compute                the slowest rank's compute stream was busy
//   exposed communication  the rest of that rank's time
//   shift row, ...         one for each kind of communication and stream: the time of all its
//                          operations, waiting for peers included; mean of the ranks
#pragma once

#include <string>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "sim/timeline.hpp"

namespace attnsim::validate {

struct part_time {
  std::string name;
  seconds predicted;
  seconds measured;

  /// Relative to what was measured; 0 where both are zero.
  double error() const;
};

/// Both timelines with their intervals.
std::vector<part_time> compare(const schedule&, const timeline& predicted,
                               const timeline& measured);

}  // namespace attnsim::validate
