// A priority queue of small integers (link numbers): smallest key first, any key can be changed or
// removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attnsim {

template <typename Key>
class index_heap {
 public:
  /// Indices must be below the size given here.
  void resize(std::size_t indices) { places_.resize(indices, absent); }

  bool empty() const { return nodes_.empty(); }
  std::uint32_t top() const { return nodes_.front().index; }
  Key top_key() const { return nodes_.front().key; }

  void clear() {
    for (const node& n : nodes_) places_[n.index] = absent;
    nodes_.clear();
  }

  /// Inserts the index or changes its key. O(log size).
  void set(std::uint32_t index, Key key) {
    if (places_[index] == absent) {
      nodes_.push_back({key, index});
      rise(nodes_.size() - 1);
    } else {
      const std::size_t place = places_[index];
      const bool smaller = key < nodes_[place].key;
      nodes_[place].key = key;
      smaller ? rise(place) : sink(place);
    }
  }

  /// Removes the index if it is there. O(log size).
  void erase(std::uint32_t index) {
    const std::size_t place = places_[index];
    if (place == absent) return;
    places_[index] = absent;
    const node last = nodes_.back();
    nodes_.pop_back();
    if (place == nodes_.size()) return;
    const bool smaller = last.key < nodes_[place].key;
    nodes_[place] = last;
    smaller ? rise(place) : sink(place);
  }

 private:
  static constexpr std::uint32_t absent = static_cast<std::uint32_t>(-1);

  struct node {
    Key key;
    std::uint32_t index;
  };

  void put(std::size_t place, const node& moved) {
    nodes_[place] = moved;
    places_[moved.index] = static_cast<std::uint32_t>(place);
  }

  void rise(std::size_t place) {
    const node moved = nodes_[place];
    for (; place > 0; place = (place - 1) / 2) {
      const node& parent = nodes_[(place - 1) / 2];
      if (!(moved.key < parent.key)) break;
      put(place, parent);
    }
    put(place, moved);
  }

  void sink(std::size_t place) {
    const node moved = nodes_[place];
    for (std::size_t child; (child = 2 * place + 1) < nodes_.size(); place = child) {
      const std::size_t right = child + 1 < nodes_.size() ? child + 1 : child;
      child += nodes_[right].key < nodes_[child].key;
      if (!(nodes_[child].key < moved.key)) break;
      put(place, nodes_[child]);
    }
    put(place, moved);
  }

  std::vector<node> nodes_;
  std::vector<std::uint32_t> places_;
};

}  // namespace attnsim
