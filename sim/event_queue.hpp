// Events in order of time, and of scheduling where times are equal: runs are reproducible to the bit.
#pragma once

#include <queue>
#include <vector>

#include "sim/clock.hpp"

namespace attnsim {

template <typename Event>
class event_queue {
 public:
  void schedule(picoseconds time, Event event) { heap_.push({time, next_sequence_++, event}); }

  picoseconds next_time() const { return heap_.empty() ? never : heap_.top().time; }

  Event pop() {
    const Event event = heap_.top().event;
    heap_.pop();
    return event;
  }

 private:
  struct entry {
    picoseconds time;
    std::uint64_t sequence;
    Event event;

    friend bool operator<(const entry& a, const entry& b) {
      return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
    }
  };

  std::priority_queue<entry> heap_;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace attnsim
