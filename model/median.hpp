// Of several values the middle one, and others by their rank.
#pragma once

#include <vector>

namespace attnsim {

/// Preconditions: there are values.
double median(std::vector<double>);
/// The value below which a share of the others lies, linear between two of them (Hyndman and Fan's type 7, as in pandas).
double quantile(std::vector<double>, double share);

}  // namespace attnsim
