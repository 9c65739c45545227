#include "model/cost/placed_schedule.hpp"

#include <fmt/format.h>

#include "model/attention/tokens.hpp"
#include "model/cost/block_cost.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"

namespace attnsim {
namespace {

/// The strategy with what its generator wants to know of the cluster.
strategy informed(strategy s, const cluster& c, const attention& a, pass_kind pass) {
  if (find_algorithm(s.schedule).weighs_blocks) s.block_cost = block_cost(c, a, s, pass);
  return s;
}

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

placed_schedule::placed_schedule(const cluster& c, const attention& a, const strategy& s,
                                 pass_kind pass)
    : placed_schedule(c, a, s, make_schedule(informed(s, c, a, pass), a, pass)) {}

placed_schedule::placed_schedule(const cluster& c, const attention& a, const strategy& s,
                                 schedule program)
    : placed_schedule(placed_ranks(c, place(s.placement, program.grid, c)), a, s,
                      std::move(program)) {}

placed_schedule::placed_schedule(const placed_ranks& ranks, const attention& a, const strategy& s,
                                 pass_kind pass)
    : placed_schedule(ranks, a, s, make_schedule(informed(s, ranks.on(), a, pass), a, pass)) {}

placed_schedule::placed_schedule(const placed_ranks& ranks, const attention& a, const strategy& s,
                                 schedule&& program)
    : cluster_(ranks.on()),
      strategy_(s),
      kernel_(cluster_.device.kernel(s.kernel)),
      schedule_(std::move(program)),
      devices_(ranks.devices()),
      workload_(schedule_, shared_out(a, s, schedule_), s.tokens,
                kernel_ == nullptr || kernel_->staircase, s.merges),
      transfers_(schedule_, ranks),
      costs_(workload_, cluster_.device, kernel_, s.start) {}

}  // namespace attnsim
