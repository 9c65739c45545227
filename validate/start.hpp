// Ranks that start together, for whoever times them.
#pragma once

#include "validate/transport.hpp"

namespace attnsim::validate {

/// This process's steady clock, in seconds.
double steady_seconds();

/// All ranks return at one moment, a few milliseconds from now, as well as their clocks agree (transport::clock_offset,
/// which is asked once a rank and handed in here). Returns how late this rank is, in seconds.
double start_together(transport&, double clock_offset);

}  // namespace attnsim::validate
