// The rows of a sweep that any number of processes make together, on machines that share a folder: tasks of a Slurm
// array, or the same command started by hand. They may come, be killed and go at any time; the file is always the same.
//
// Points are done in blocks. While not all are there, the folder FILE.parts has, for block B:
//
//   B.taken.G   made by who begins it in round G; nobody else does then. In later rounds what others began and have not
//               finished is begun again, as they may be dead: no locks, no clocks.
//   B.rows      its rows, whole: written under another name, then renamed
//
// Who finds all blocks there puts the file together, under another name too. Rows depend on nothing but their point, so
// it does no harm where two do the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <string>

#include "sweep/dispenser.hpp"

namespace attnsim::sweep {

/// `header` and rows: lines of CSV without their ends.
class shared_rows {
 public:
  /// How a row must begin; of another sweep's file it does not.
  using prefix = std::function<std::string(std::size_t index)>;

  /// Joins those at work on `path`, or is the first. `spec` is what all must have the same. Throws input_error where the
  /// folder or `path` is another sweep's, or cannot be written.
  shared_rows(std::string path, std::string spec, std::string header, std::size_t rows,
              prefix begins);

  /// Until `path` is there. `progress` gets how many rows are done by all, from time to time; one call at a time.
  void run(int threads, const std::function<worker()>& make_worker,
           const std::function<void(std::size_t done)>& progress);

  /// Rows of a block, the last one aside: for at most a thousand blocks or so.
  static std::size_t block_of(std::size_t rows);

 private:
  std::size_t blocks() const { return (rows_ + block_ - 1) / block_; }
  std::string part(const std::string& name) const { return folder_ + "/" + name; }
  bool is_done(std::size_t block) const;
  std::size_t rows_done() const;
  bool is_complete() const;
  bool is_over() const;
  void write_part(const std::string& name, const std::string& text) const;
  void check_spec() const;
  bool take(std::size_t block, int round) const;
  bool work_round(const worker&, int round);
  void work(const worker&);
  void report(bool always);
  void merge() const;

  std::string path_, folder_, spec_, header_;
  std::size_t rows_, block_;
  prefix begins_;
  std::function<void(std::size_t)> progress_;
  std::mutex mutex_;  ///< of what follows
  double reported_ = 0;
  std::exception_ptr failure_;
  std::atomic<bool> over_ = false;
};

}  // namespace attnsim::sweep
