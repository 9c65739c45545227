// The slots of buffers that operands name, relative to the rank.
#pragma once

#include <set>
#include <utility>

#include "model/schedule/schedule.hpp"

namespace attnsim {

inline int wrapped(int value, int extent) {
  return (value % extent + extent) % extent;
}

/// Calls f(slot) for each.
template <typename F>
void for_each_slot(const schedule& s, const operand& o, F f) {
  const int extent = s.grid.extent_of(s.buffer_of(o).slots);
  for (int i = 0; i < o.slots; ++i) f(wrapped(o.first_slot + i, extent));
}

class slot_set {
 public:
  void add(const schedule& s, const operand& o) {
    for_each_slot(s, o, [&](int slot) { slots_.emplace(o.buffer, slot); });
  }
  void remove(const schedule& s, const operand& o) {
    for_each_slot(s, o, [&](int slot) { slots_.erase({o.buffer, slot}); });
  }
  /// All of them.
  bool has(const schedule& s, const operand& o) const {
    bool all = true;
    for_each_slot(s, o, [&](int slot) { all = all && slots_.count({o.buffer, slot}) > 0; });
    return all;
  }

 private:
  std::set<std::pair<int, int>> slots_;  ///< buffer, slot
};

}  // namespace attnsim
