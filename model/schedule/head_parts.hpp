// A schedule run for one part of the heads after the other, so that what it sends before, between and after its kernels lies
// under the kernels of other parts: with n parts only the first part's transfers in and the last part's out are exposed, a share
// 1/n of what waits on both sides of a plain Ulysses, all-gather or Attention2D. A part's operations are
//
//   ahead   all before the first kernel and before the first computation that waits for a transfer
//   body    from there to the last kernel, and what follows it without waiting, such as its results' transfer
//   tail    computations that wait for such transfers (a merge, a copy to the results), each with what follows it
//
// What is ahead is launched two parts before its body, so that transfers in go before those out and links are never idle between
// them; behind every body follows one step of each earlier part's tail: in front of it the compute stream would wait. With four parts
//
//   ahead 0, 1, 2   body 0   ahead 3   body 1, tail 0   body 2, tail 1   body 3, tail 2   tail 3
//
// A stream that is used between kernels (a ring's) has another for what is ahead ("keys ahead"). Buffers are shared among parts
// where lifetimes allow: three or four parts' worth. Each part has an equal share of the K/V heads with their query heads.
#pragma once

#include "model/schedule/schedule.hpp"

namespace attnsim {

/// The same for one part. Throws std::invalid_argument when the streams are more than a schedule may have (8).
schedule in_head_parts(schedule, int parts);

}  // namespace attnsim
