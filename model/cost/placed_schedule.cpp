#include "model/cost/placed_schedule.hpp"

#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"

namespace attnsim {

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
    : placed_schedule(
          ranks, s,
          std::make_shared<const priced_schedule>(ranks.on().device, a, s, std::move(program))) {}

placed_schedule::placed_schedule(const placed_ranks& ranks, const strategy& s,
                                 std::shared_ptr<const priced_schedule> priced)
    : cluster_(ranks.on()),
      strategy_(s),
      devices_(ranks.devices()),
      priced_(std::move(priced)),
      transfers_(priced_->program(), ranks) {}

}  // namespace attnsim
