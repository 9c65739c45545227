// A schedule run for one part of the heads after the other, so that what it sends before and after its kernels lies under the
// kernels of another part: with n parts only the first part's transfers in and the last part's out are exposed, a share 1/n
// of what waits on both sides of a plain Ulysses, all-gather or Attention2D.
//
//   launched   ahead of part 0, ahead of part 1, rest of part 0, ahead of part 2, rest of part 1, ...
//
// where what is ahead is all before the part's first kernel. It has streams of its own ("heads ahead"), or a part's transfers
// out would wait in line behind the next one's in. Buffers are shared among parts where lifetimes allow: two parts' worth.
// Each part has an equal share of the K/V heads with their query heads.
#pragma once

#include "model/schedule/schedule.hpp"

namespace attnsim {

/// The same for one part. Throws std::invalid_argument when the streams are more than a schedule may have (8).
schedule in_head_parts(const schedule&, int parts);

}  // namespace attnsim
