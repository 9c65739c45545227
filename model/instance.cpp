#include "model/instance.hpp"

#include "model/placement.hpp"
#include "model/schedules/schedules.hpp"

namespace attnsim {

instance::instance(const cluster& c, const attention& a, const strategy& s, pass_kind pass)
    : cluster_(c),
      strategy_(s),
      kernel_(c.device.kernel(s.kernel)),
      schedule_(make_schedule(s, a, pass)),
      devices_(place(s.placement, schedule_.grid, c)),
      workload_(schedule_, a, s.tokens, kernel_ == nullptr || kernel_->staircase),
      transfers_(schedule_, c, devices_),
      costs_(workload_, c.device, kernel_) {}

}  // namespace attnsim
