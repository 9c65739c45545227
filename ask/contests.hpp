// Schedules of one problem that were measured: is the one predicted to be fastest the fastest?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/units.hpp"

namespace attnsim::ask {

class contests {
 public:
  /// A schedule for a problem. Those predicted alike to the last digit are one program under several names (attention2d on
  /// one column is allgather): their measured times differ by chance, so they count as one, with their mean.
  void add(const std::string& problem, seconds predicted, seconds measured);

  struct tally {
    int right = 0;
    int of = 0;  ///< problems whose fastest two differ by over 3 %
  };
  tally named_right() const;

 private:
  using measured_times = std::map<seconds, std::vector<double>>;  ///< by prediction

  std::map<std::string, measured_times> problems_;
};

}  // namespace attnsim::ask
