// Messages from one rank to another whose sender need not wait for its receiver: buffers there take up to `limit` bytes (device.hpp,
// run_ahead). One at a time:
//
//   it begins    when its sender has come to it, after its latency
//   it pauses    where so many bytes are ahead of the receiver, until that has come to it or to one before it
//   it ends      for the sender with its last byte; for the receiver then too, or when it comes to it later
//
// With a limit of 0 both would have to come first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/clock.hpp"

namespace attnsim {

class connection {
 public:
  /// More than 0.
  explicit connection(double limit) : limit_(limit) {}

  /// The sender comes to its next message, the last having ended.
  void send(double bytes, picoseconds latency) {
    ++sent_;
    left_ = bytes;
    latency_ = latency;
  }
  /// The receiver does. True where all of the message is there.
  bool receive(double bytes) {
    ++awaited_;
    ahead_ -= bytes;
    return awaited_ <= ended_;
  }

  struct part {
    double bytes;
    picoseconds latency;
  };
  /// What begins to move now, if anything does.
  std::optional<part> begin() {
    if (moving_ || ended_ == sent_) return {};
    const double room = limit_ - ahead_;
    if (!is_awaited() && room <= 0) return {};
    const double bytes = is_awaited() ? left_ : std::min(left_, room);
    moving_ = true;
    left_ -= bytes;
    ahead_ += bytes;
    return part{bytes, std::exchange(latency_, 0)};
  }
  /// It has moved. True where the message has.
  bool end() {
    moving_ = false;
    if (left_ > 0) return false;
    ++ended_;
    return true;
  }
  /// The receiver has come to the message that was sent last.
  bool is_awaited() const { return awaited_ >= sent_; }

 private:
  double limit_;
  double ahead_ = 0;  ///< bytes that have begun to move, less those that the receiver has come to
  double left_ = 0;   ///< of the message, not begun
  picoseconds latency_ = 0;  ///< of the message, not begun
  bool moving_ = false;
  std::uint32_t sent_ = 0, awaited_ = 0, ended_ = 0;  ///< messages
};

}  // namespace attnsim
