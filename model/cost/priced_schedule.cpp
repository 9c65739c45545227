#include "model/cost/priced_schedule.hpp"

#include <fmt/format.h>

#include "model/attention/tokens.hpp"
#include "model/cost/block_cost.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim {
namespace {

/// With unequal shares of the tokens where the strategy has them.
attention shared_out(const attention& a, const strategy& s, const schedule& program) {
  if (s.shares.empty()) return a;
  const int parts = program.grid.extent_of(program.head_axis),
            slots = program.chunk_total() / parts;
  if (static_cast<int>(s.shares.size()) != slots) {
    throw infeasible(asked("shares"), std::to_string(s.shares.size()),
                     fmt::format("expected one for each of {} chunks", slots));
  }
  if (program.column_major_chunks || program.whole_queries)
    throw infeasible(asked("shares"), "unequal", s.schedule + " shares its tokens equally");
  return with_shares(a, s.shares, s.tokens,
                     layout_unit(s.tokens, program.chunk_total(), parts) / slots);
}

}  // namespace

priced_schedule::priced_schedule(const device_profile& device, const attention& a,
                                 const strategy& s, schedule program)
    : kernel_(device.kernel(s.kernel, a.dtype)),
      schedule_(std::move(program)),
      workload_(schedule_, shared_out(a, s, schedule_), s.tokens,
                kernel_ == nullptr || kernel_->staircase, s.merges),
      costs_(workload_, device, kernel_, s.start, s.copies.rate) {}

strategy informed(strategy s, const cluster& c, const attention& a, pass_kind pass) {
  if (find_algorithm(s.schedule).weighs_blocks) s.block_cost = block_cost(c, a, s, pass);
  return s;
}

}  // namespace attnsim
