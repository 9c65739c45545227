// How often a run is measured: as often as asked, or until its median is known well enough.
//
//   median_within   half-width of a 90 % interval around the median, over the median:
//                   1.645 x 1.25 x 0.87 x (distance from the median of three quarters) / sqrt(runs) / median
//                   (the median of normal times has 1.25 times the deviation of their mean)
//
// All ranks see the durations of all, so all of them decide alike.
#pragma once

#include <span>

#include "model/units.hpp"

namespace attnsim::validate {

struct repeats_wanted {
  int runs = 0;          ///< exactly so many; 0: until the median is known
  double within = 0.03;  ///< then this well,
  int least = 5;         ///< of at least so many runs,
  int most = 30;         ///< and at most so many,
  seconds longest{5};    ///< which together take no longer than that
};

/// Precondition: there are durations.
double median_within(std::span<const seconds> durations);

bool are_enough(std::span<const seconds> durations, const repeats_wanted&);

/// Enough, but their median is not known as well as wanted.
bool stopped_early(std::span<const seconds> durations, const repeats_wanted&);

}  // namespace attnsim::validate
