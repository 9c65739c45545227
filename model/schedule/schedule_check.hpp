// Proof by execution that a schedule computes attention: runs the program on every rank with names instead of numbers and
// checks that each operation finds the blocks it names where it looks for them, that what a rank receives is what it
// expects, that no (query chunk, key chunk) pair is counted twice, and that in the end every rank holds its own chunk's
// complete result: o over all keys, dQ over all keys, dK and dV over all queries.
#pragma once

#include "model/schedule/schedule.hpp"

namespace attnsim {

/// Throws std::logic_error that names the operation, the rank and what is wrong. O(operations x ranks x chunks).
void check(const schedule&);

}  // namespace attnsim
