#include "sim/kernel_run.hpp"

#include <algorithm>
#include <cmath>

namespace attnsim {

void kernel_run::begin(picoseconds now, double duration, int calls, double slowdown) {
  running_ = true;
  remaining_ = duration;
  call_ = duration / std::max(1, calls);
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

picoseconds kernel_run::room(picoseconds now) const {
  if (!running_ || began_ == now) return now;
  const double left = std::max(0.0, remaining_ * slowdown_ - to_seconds(now - since_));
  return now + to_picoseconds(std::fmod(left, call_ * slowdown_));
}

}  // namespace attnsim
