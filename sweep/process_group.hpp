// The processes that share a sweep: those that mpirun or srun started, or this one alone.
//
//   process_group all;
//   if (!all.first()) return all.help(make_worker(all.receive()));
//   all.send(text);
//   all.run(points, threads, make_worker, done);
//
// The first process hands out the points as the others ask for them (sweep/dispenser.hpp), works itself, and alone
// writes. A process that dies ends all of them, by MPI's launcher.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sweep/dispenser.hpp"

namespace attnsim::sweep {

class process_group {
 public:
  /// Joins the others. std::runtime_error where several were started by MPI and the program was built without it.
  process_group();
  /// Waits for the others. If nothing was sent to them they get an empty text.
  ~process_group();
  process_group(const process_group&) = delete;

  bool first() const { return rank_ == 0; }
  int processes() const { return processes_; }

  /// From the first process to the others, once.
  void send(const std::string& text);
  std::string receive();

  /// First process: until every row of `points` is back. `threads` of this process work, each with a worker of its own;
  /// of the other processes one each. The first failure comes out.
  void run(std::vector<std::size_t> points, int threads, const std::function<worker()>& make_worker,
           const std::function<void(std::size_t, const std::string&)>& done);
  /// Other processes: until no point is left.
  void help(const worker&);

 private:
  void serve(dispenser&);

  int rank_ = 0, processes_ = 1;
  bool sent_ = false;
};

/// Cores that this process may use.
int available_cores();

}  // namespace attnsim::sweep
