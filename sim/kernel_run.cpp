#include "sim/kernel_run.hpp"

#include <algorithm>
#include <cmath>

namespace attnsim {

void kernel_run::begin(picoseconds now, std::uint32_t operation, double duration, double parts,
                       double slowdown) {
  running_ = true;
  operation_ = operation;
  remaining_ = to_seconds(to_picoseconds(duration));
  part_ = remaining_ / std::max(1.0, parts);
  slowdown_ = slowdown;
  began_ = since_ = now;
}

bool kernel_run::slow_down(picoseconds now, double slowdown) {
  if (!running_ || slowdown == slowdown_) return false;
  remaining_ = std::max(0.0, remaining_ - to_seconds(now - since_) / slowdown_);
  since_ = now;
  slowdown_ = slowdown;
  return true;
}

picoseconds kernel_run::room(picoseconds now, bool goes_first) const {
  if (!running_) return now;
  if (began_ == now) return goes_first ? now : later(now, to_picoseconds(part_ * slowdown_));
  const double left = std::max(0.0, remaining_ * slowdown_ - to_seconds(now - since_));
  return later(now, to_picoseconds(std::fmod(left, part_ * slowdown_)));
}

}  // namespace attnsim
