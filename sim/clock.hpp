// Simulated time: integer picoseconds, so that equal times compare equal and runs are reproducible.
// The range is
// +-106 days; `never` is its end and stands for "no such time".
#pragma once

#include <cstdint>
#include <limits>

namespace attnsim {

using picoseconds = std::int64_t;

inline constexpr picoseconds never = std::numeric_limits<picoseconds>::max();

constexpr double to_seconds(picoseconds time) {
  return static_cast<double>(time) * 1e-12;
}

/// Rounds to the nearest picosecond; `never` for times beyond the range, infinity included.
inline picoseconds to_picoseconds(double time_in_seconds) {
  constexpr double range = 9.2e18;
  const double time = time_in_seconds * 1e12;
  if (!(time < range)) return never;
  return static_cast<picoseconds>(time < 0 ? time - 0.5 : time + 0.5);
}

/// `wait` after `now`; `never` beyond the range.
constexpr picoseconds later(picoseconds now, picoseconds wait) {
  return wait < never - now ? now + wait : never;
}

}  // namespace attnsim
