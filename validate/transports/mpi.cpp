#include "validate/transports/mpi.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <sys/prctl.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <mutex>
#include <thread>

#include "validate/transports/host_transport.hpp"

namespace attnsim::validate {
namespace {

using clock = std::chrono::steady_clock;

/// MPI counts in int: longer messages are cut.
constexpr std::size_t longest_message = std::size_t{1} << 30;

/// One exchange, waited for by the thread of a stream.
struct task {
  int lane;
  const std::vector<outgoing>& sends;
  const std::vector<incoming>& receives;
  clock::time_point posted, deadline;
  std::vector<MPI_Request> requests;
  std::vector<int> peers;  ///< of the requests
  enum class state { pending, done, late } is = state::pending;
};

/// Ends the process with a line on standard error unless dismissed in time: for calls of MPI that
/// cannot be given up.
class watchdog {
 public:
  watchdog(std::chrono::duration<double> time_out, std::string line) {
    thread_ = std::thread([this, time_out, line = std::move(line)] {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, time_out, [&] { return dismissed_; })) return;
      fmt::print(stderr, "{} within {:g} s\n", line, time_out.count());
      std::_Exit(1);
    });
  }
  ~watchdog() {
    {
      const std::lock_guard lock(mutex_);
      dismissed_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool dismissed_ = false;
  std::thread thread_;
};

class mpi_transport final : public host_transport {
 public:
  explicit mpi_transport(std::chrono::duration<double> time_out) : host_transport(time_out) {
    thread_ = std::thread([this] { serve(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ranks_ > 0; });
  }

  ~mpi_transport() override {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::string_view name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  /// A machine has one clock.
  double clock_offset() override { return on_one_machine_ ? 0 : host_transport::clock_offset(); }

  void exchange(int lane, const std::string& what, const std::vector<outgoing>& sends,
                const std::vector<incoming>& receives) override {
    task t{.lane = lane,
           .sends = sends,
           .receives = receives,
           .posted = clock::now(),
           .deadline = clock::now() + std::chrono::duration_cast<clock::duration>(time_out())};
    std::unique_lock lock(mutex_);
    if (!failed_) {
      arrived_.push_back(&t);
      changed_.notify_all();
      changed_.wait(lock, [&] { return t.is != task::state::pending; });
    }
    if (t.is == task::state::done) return;
    const bool first = !std::exchange(failed_, true);
    lock.unlock();
    fail(what, first ? nothing_from(late_peer(t)) : "given up, as another operation failed");
  }

 private:
  void serve() {
    enter();
    std::list<task*> active;
    std::unique_lock lock(mutex_);
    while (true) {
      if (active.empty()) changed_.wait(lock, [&] { return closed_ || !arrived_.empty(); });
      std::deque<task*> fresh;
      fresh.swap(arrived_);
      if (closed_ && fresh.empty() && active.empty()) break;
      lock.unlock();
      for (auto* t : fresh) post(*t);
      active.insert(active.end(), fresh.begin(), fresh.end());
      const auto ended = poll(active);
      lock.lock();
      for (const auto& [t, state] : ended) t->is = state;
      if (!ended.empty()) changed_.notify_all();
      if (ended.empty() && arrived_.empty()) changed_.wait_for(lock, pause(active));
    }
    if (!failed_) leave();
  }

  void enter() {
    prctl(PR_SET_TIMERSLACK, 1);
    int provided = 0, rank = 0, ranks = 0;
    {
      const watchdog guard(time_out(), "attnsim: MPI_Init: not all ranks have come");
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    on_one_machine_ = ranks_of_this_machine() == ranks;
    const std::lock_guard lock(mutex_);
    rank_ = rank;
    ranks_ = ranks;
    changed_.notify_all();
  }

  static int ranks_of_this_machine() {
    MPI_Comm machine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    int ranks = 0;
    MPI_Comm_size(machine, &ranks);
    MPI_Comm_free(&machine);
    return ranks;
  }

  void leave() {
    const watchdog guard(time_out(),
                         fmt::format("rank {}: MPI_Finalize: not all ranks have come", rank_));
    MPI_Finalize();
  }

  void post(task& t) {
    for (const auto& r : t.receives) {
      each_piece(r.bytes, [&](std::size_t at, int bytes) {
        t.peers.push_back(r.from);
        MPI_Irecv(static_cast<std::byte*>(r.data) + at, bytes, MPI_BYTE, r.from, t.lane,
                  MPI_COMM_WORLD, &t.requests.emplace_back());
      });
    }
    for (const auto& s : t.sends) {
      each_piece(s.bytes, [&](std::size_t at, int bytes) {
        t.peers.push_back(s.to);
        MPI_Isend(static_cast<const std::byte*>(s.data) + at, bytes, MPI_BYTE, s.to, t.lane,
                  MPI_COMM_WORLD, &t.requests.emplace_back());
      });
    }
  }

  template <typename F>
  static void each_piece(std::size_t bytes, F f) {
    for (std::size_t at = 0; at < bytes; at += longest_message) {
      f(at, static_cast<int>(std::min(longest_message, bytes - at)));
    }
  }

  /// Takes those that ended off the list.
  static std::vector<std::pair<task*, task::state>> poll(std::list<task*>& active) {
    std::vector<std::pair<task*, task::state>> ended;
    for (auto at = active.begin(); at != active.end();) {
      auto& t = **at;
      int complete = 0;
      MPI_Testall(static_cast<int>(t.requests.size()), t.requests.data(), &complete,
                  MPI_STATUSES_IGNORE);
      const bool late = !complete && clock::now() > t.deadline;
      if (late) cancel(t);
      if (complete || late)
        ended.emplace_back(&t, complete ? task::state::done : task::state::late);
      at = complete || late ? active.erase(at) : std::next(at);
    }
    return ended;
  }

  /// Until the next poll: at most a hundredth of the time that the newest task has run.
  static clock::duration pause(const std::list<task*>& active) {
    using std::chrono::microseconds;
    auto shortest = clock::duration::max();
    for (const auto* t : active) shortest = std::min(shortest, (clock::now() - t->posted) / 100);
    return std::clamp<clock::duration>(shortest, microseconds(50), microseconds(500));
  }

  static void cancel(task& t) {
    for (auto& request : t.requests) {
      int complete = 0;
      MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
      if (!complete) MPI_Cancel(&request);
    }
  }

  /// Of the first message that is still under way.
  static int late_peer(const task& t) {
    for (std::size_t i = 0; i < t.requests.size(); ++i) {
      if (t.requests[i] != MPI_REQUEST_NULL) return t.peers[i];
    }
    return -1;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<task*> arrived_;
  bool closed_ = false;
  bool failed_ = false;
  int rank_ = 0;
  int ranks_ = 0;
  bool on_one_machine_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<transport> join_mpi(std::chrono::duration<double> time_out) {
  return std::make_unique<mpi_transport>(time_out);
}

bool has_mpi() {
  return true;
}

}  // namespace attnsim::validate
