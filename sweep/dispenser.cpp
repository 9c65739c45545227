#include "sweep/dispenser.hpp"

#include <algorithm>

namespace attnsim::sweep {

std::vector<std::size_t> dispenser::take(std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (failure_) return {};
  const auto left = points_.size() - next_;
  const auto n = std::min(left, std::clamp<std::size_t>(left / (2 * workers_), 1, most));
  const auto from = points_.begin() + static_cast<std::ptrdiff_t>(next_);
  next_ += n;
  return {from, from + static_cast<std::ptrdiff_t>(n)};
}

void dispenser::give(std::size_t point, const std::string& row) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  try {
    done_(point, row);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void dispenser::work(const worker& row_of) {
  try {
    for (auto points = take(); !points.empty(); points = take()) {
      for (const auto p : points) give(p, row_of(p));
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void dispenser::rethrow_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace attnsim::sweep
