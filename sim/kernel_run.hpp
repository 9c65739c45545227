// The attention kernel that runs on a device: one at a time, at a speed that changes while
// communication runs beside it.
#pragma once

#include <cstdint>

#include "sim/clock.hpp"

namespace attnsim {

class kernel_run {
 public:
  /// Operation number `operation`: takes `duration` seconds at full speed, in `parts` equal ones, kernel calls or waves. The
  /// duration is rounded, so that what communication adds is rounded by itself: the same to the picosecond for kernels that
  /// take differently long. Else ranks that communication slows down differently would drift apart at two paces, one with each
  /// kind of kernel, and be no rows (ring_of_ranks.hpp).
  void begin(picoseconds now, std::uint32_t operation, double duration, double parts,
             double slowdown);
  /// Everything takes `slowdown` times as long from now on. True when that moves the end.
  bool slow_down(picoseconds now, double slowdown);
  void stop() { running_ = false; }

  bool running() const { return running_; }
  picoseconds end() const { return later(since_, to_picoseconds(remaining_ * slowdown_)); }
  /// It does not end before this, whatever runs beside it: as at full speed from now on, less what is rounded.
  picoseconds least_end() const { return later(since_, to_picoseconds(remaining_)) - 2; }
  std::uint32_t operation() const { return operation_; }
  /// When communication that becomes ready now finds free multiprocessors: at once if it becomes ready together with the
  /// kernel and `goes_first`, else when the part in progress ends (tests/gpu: launch order, measured).
  picoseconds room(picoseconds now, bool goes_first) const;

  /// The same run, all of it later.
  void delay(picoseconds by) { began_ += by, since_ += by; }
  /// Whether it is the other run so much later: whatever happens to both then happens so much later.
  bool follows(const kernel_run& other, picoseconds by) const {
    if (running_ != other.running_) return false;
    return !running_ || (operation_ == other.operation_ && remaining_ == other.remaining_ &&
                         part_ == other.part_ && slowdown_ == other.slowdown_ &&
                         began_ == other.began_ + by && since_ == other.since_ + by);
  }

 private:
  bool running_ = false;
  std::uint32_t operation_ = 0;
  double remaining_ = 0;  // seconds at full speed, as of since_
  double part_ = 0;       // seconds of one part at full speed
  double slowdown_ = 1;
  picoseconds began_ = 0;
  picoseconds since_ = 0;
};

}  // namespace attnsim
