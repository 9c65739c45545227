// The rings of scenario.hpp as a schedule of their own: every step exchanges blocks along one or two
// axes of the grid while it computes, and the next step waits for both.
#pragma once

#include "model/schedule.hpp"

namespace attnsim {

/// `rows` x `cols` ranks; along an axis of extent 1 nothing is sent. max(rows, cols) - 1 steps.
schedule ring_exchanges(int rows, int cols, bool compute);

/// A problem whose key block is `bytes` on every rank.
attention exchange_problem(int ranks, double bytes);

}  // namespace attnsim
