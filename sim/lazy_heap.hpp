// A priority queue for keys that only grow: smallest first. The key of an entry is a lower bound
// that need only be brought up to date once it comes first, so entries are never looked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace attnsim {

class lazy_heap {
 public:
  bool empty() const { return size_ == 0; }
  std::uint32_t top() const { return entries_.front().index; }
  double top_key() const { return entries_.front().key; }

  void clear() { size_ = 0; }
  /// The entries come in order once all are added and arrange() is called. O(number of entries).
  void add(std::uint32_t index, double key) {
    if (++size_ >= entries_.size()) entries_.resize(2 * size_);
    entries_[size_ - 1] = {key, index};
  }
  void arrange() {
    if (empty()) return;
    entries_[size_].key = last;
    for (std::size_t place = size_ / 2; place-- > 0;) sink(place, entries_[place]);
  }

  /// O(log size), less if the entry stays among the first.
  void raise_top(double key) { sink(0, {key, top()}); }
  void pop() {
    const entry moved = entries_[--size_];
    entries_[size_].key = last;
    sink(0, moved);
  }

 private:
  struct entry {
    double key;
    std::uint32_t index;
  };
  static constexpr double last = std::numeric_limits<double>::infinity();

  void sink(std::size_t place, const entry sunk) {
    entry* const entries = entries_.data();
    const std::size_t size = size_;
    for (std::size_t child; (child = 2 * place + 1) < size; place = child) {
      child += entries[child + 1].key < entries[child].key;
      if (!(entries[child].key < sunk.key)) break;
      entries[place].key = entries[child].key;
      entries[place].index = entries[child].index;
    }
    entries[place].key = sunk.key;
    entries[place].index = sunk.index;
  }

  std::vector<entry> entries_;  // one more than size_, with a key that is never smaller
  std::size_t size_ = 0;
};

}  // namespace attnsim
