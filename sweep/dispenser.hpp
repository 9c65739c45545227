// Hands out a sweep's points, in order, to whoever is free, and takes their rows back. For several threads at once.
#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace attnsim::sweep {

/// What a worker does: the row of a point, by its index. A worker is one thread's own.
using worker = std::function<std::string(std::size_t)>;

class dispenser {
 public:
  /// `workers` share the points; `done` gets every row, one call at a time.
  dispenser(std::vector<std::size_t> points, std::size_t workers,
            std::function<void(std::size_t, const std::string&)> done)
      : points_(std::move(points)), workers_(workers), done_(std::move(done)) {}

  /// Up to `most` points, but at most half of a worker's share of those that are left, and one at least. Empty: none left.
  std::vector<std::size_t> take(std::size_t most = 1);
  void give(std::size_t point, const std::string& row);
  /// Works until no point is left.
  void work(const worker&);

  /// The first exception of `done` or a worker: after it no point is left for anybody.
  void rethrow_failure() const;

 private:
  std::mutex mutex_;
  std::vector<std::size_t> points_;
  std::size_t next_ = 0, workers_;
  std::function<void(std::size_t, const std::string&)> done_;
  std::exception_ptr failure_;
};

}  // namespace attnsim::sweep
