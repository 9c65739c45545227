// Inputs that every rank can make for itself, element by element.
#pragma once

#include <cstdint>

#include "model/attention/attention.hpp"

namespace attnsim::validate {

/// splitmix64 (Steele, Lea, Flood 2014): a well mixed number in [-1, 1).
double mixed(std::uint64_t);

/// To the nearest number of the type.
double rounded(double value, data_type);

}  // namespace attnsim::validate
