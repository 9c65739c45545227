// Clocks at a card's power limit, of kernels that run in turn for long.
//
//   power         of a kernel at clock x, a share of the highest: idle + (full - idle) x^3; `full` is what it would take at the highest.
//                 Of operations that the memory bounds: `memory`, whatever the clock
//   own clock     no kernel is above that at which it takes `brake`: the card holds it back at once
//   shared clock  the highest at which the mean power over time is within `limit`, one for all that run in turn in a tenth of a second
//   time          goes with 1 / clock; what the memory bounds does not
//
// The cube: dynamic power goes with the clock and the square of the voltage, which follows the clock. Chosen with one H200's products,
// FlashAttention-2, cuDNN and sums of 8,192 tokens known, alone and in pairs (reproduce/clocks.py fits them); layers of 4,096 to 32,768
// tokens there and on another card were held out (docs/steps.md).
#pragma once

#include <span>

#include "model/cluster/device.hpp"

namespace attnsim {

struct powered_time {
  watts full;
  seconds time;  ///< at its own highest clock
};

/// The kernel's at a shared one.
double own_clock(const power_profile&, watts full, double shared = 1);

/// Of such kernels in turn, and operations that the memory bounds.
double shared_clock(const power_profile&, std::span<const powered_time>, seconds memory_bound = {});

/// The kernel's time at a shared clock over that at its own highest.
double slowdown_at(const power_profile&, watts full, double shared);

/// The same of products one behind the other, whose rates a profile has; 1 where nobody measured powers.
double products_slowdown_alone(const power_profile&);

}  // namespace attnsim
