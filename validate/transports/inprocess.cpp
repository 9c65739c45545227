#include "validate/transports/inprocess.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "validate/transports/host_transport.hpp"

namespace attnsim::validate {
namespace {

using clock = std::chrono::steady_clock;

struct letter {
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool taken = false;
};

/// What one rank sends another on one lane. Letters belong to their sender, who waits until they
/// are taken or withdraws them.
struct mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<letter*> letters;
};

/// What the ranks of a run share.
class post_office {
 public:
  mailbox& between(int lane, int from, int to) {
    const std::lock_guard lock(mutex_);
    return boxes_[{lane, from, to}];
  }

  void close(std::exception_ptr why) {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::move(why);
    closed_ = true;
    for (auto& [address, box] : boxes_) {
      const std::lock_guard box_lock(box.mutex);
      box.changed.notify_all();
    }
    const std::lock_guard board_lock(board_mutex_);
    board_changed_.notify_all();
  }

  /// What all ranks lay on the board, once all have; or give_up(a rank that has not).
  template <typename GiveUp>
  std::vector<blob> share(int rank, int ranks, const blob& own, clock::time_point deadline,
                          GiveUp give_up) {
    std::unique_lock lock(board_mutex_);
    board_.resize(static_cast<std::size_t>(ranks));
    board_[static_cast<std::size_t>(rank)] = own;
    const auto missing = [&] { return std::find(board_.begin(), board_.end(), std::nullopt); };
    const auto round = rounds_;
    if (missing() == board_.end()) {
      shared_.clear();
      for (auto& one : board_) shared_.push_back(*std::exchange(one, std::nullopt));
      ++rounds_;
      board_changed_.notify_all();
    }
    // The next round ends when this rank too has laid something.
    board_changed_.wait_until(lock, deadline, [&] { return rounds_ != round || closed_; });
    if (rounds_ == round) give_up(static_cast<int>(missing() - board_.begin()));
    return shared_;
  }

  bool closed() const { return closed_; }
  std::exception_ptr failure() const { return failure_; }

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, mailbox> boxes_;
  std::mutex board_mutex_;
  std::condition_variable board_changed_;
  std::vector<std::optional<blob>> board_;
  std::vector<blob> shared_;
  int rounds_ = 0;
  std::atomic<bool> closed_ = false;
  std::exception_ptr failure_;
};

class inprocess_transport final : public host_transport {
 public:
  inprocess_transport(post_office& post, int rank, int ranks,
                      std::chrono::duration<double> time_out)
      : host_transport(time_out), post_(post), rank_(rank), ranks_(ranks) {}

  std::string_view name() const override { return "inprocess"; }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  double clock_offset() override { return 0; }  // one process has one clock

  std::vector<blob> share(const blob& own) override {
    try {
      return post_.share(rank_, ranks_, own, deadline(),
                         [&](int missing) { fail("sharing of results", why_not(missing)); });
    } catch (...) {
      post_.close(std::current_exception());
      throw;
    }
  }

  void exchange(int lane, const std::string& what, const std::vector<outgoing>& sends,
                const std::vector<incoming>& receives) override {
    const auto until = deadline();
    std::vector<letter> letters;
    for (const auto& s : sends) letters.push_back({s.data, s.bytes});
    for (std::size_t i = 0; i < sends.size(); ++i) post(lane, sends[i].to, letters[i]);
    try {
      for (const auto& r : receives) take(lane, what, r, until);
      for (std::size_t i = 0; i < sends.size(); ++i) {
        await_taken(lane, what, sends[i].to, letters[i], until);
      }
    } catch (...) {
      for (std::size_t i = 0; i < sends.size(); ++i) withdraw(lane, sends[i].to, letters[i]);
      post_.close(std::current_exception());
      throw;
    }
  }

 private:
  clock::time_point deadline() const {
    return clock::now() + std::chrono::duration_cast<clock::duration>(time_out());
  }

  std::string why_not(int peer) const {
    return post_.closed() ? "given up, as another rank failed" : nothing_from(peer);
  }

  void post(int lane, int to, letter& l) {
    auto& box = post_.between(lane, rank_, to);
    {
      const std::lock_guard lock(box.mutex);
      box.letters.push_back(&l);
    }
    box.changed.notify_all();
  }

  void take(int lane, const std::string& what, const incoming& r, clock::time_point deadline) {
    auto& box = post_.between(lane, r.from, rank_);
    std::unique_lock lock(box.mutex);
    await(box, lock, what, r.from, deadline, [&] { return !box.letters.empty(); });
    auto& l = *box.letters.front();
    if (l.bytes != r.bytes) {
      fail(what, fmt::format("{} bytes from rank {}, expected {}", l.bytes, r.from, r.bytes));
    }
    if (l.bytes > 0) std::memcpy(r.data, l.data, l.bytes);
    l.taken = true;
    box.letters.pop_front();
    lock.unlock();
    box.changed.notify_all();
  }

  void await_taken(int lane, const std::string& what, int to, const letter& l,
                   clock::time_point deadline) {
    auto& box = post_.between(lane, rank_, to);
    std::unique_lock lock(box.mutex);
    await(box, lock, what, to, deadline, [&] { return l.taken; });
  }

  void withdraw(int lane, int to, letter& l) {
    auto& box = post_.between(lane, rank_, to);
    const std::lock_guard lock(box.mutex);
    std::erase(box.letters, &l);
  }

  template <typename Condition>
  void await(mailbox& box, std::unique_lock<std::mutex>& lock, const std::string& what, int peer,
             clock::time_point deadline, Condition condition) {
    box.changed.wait_until(lock, deadline, [&] { return condition() || post_.closed(); });
    if (condition()) return;
    fail(what, why_not(peer));
  }

  post_office& post_;
  int rank_;
  int ranks_;
};

}  // namespace

void run_in_process(int ranks, std::chrono::duration<double> time_out,
                    const std::function<void(transport&)>& body) {
  post_office post;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        inprocess_transport own(post, rank, ranks, time_out);
        body(own);
      } catch (...) {
        post.close(std::current_exception());
      }
    });
  }
  for (auto& t : threads) t.join();
  if (post.failure()) std::rethrow_exception(post.failure());
}

}  // namespace attnsim::validate
