// An in-order queue of work with its own thread: what a CUDA stream is to a GPU. An inline stream
// runs what it is given at once, on the caller's thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace attnsim::kernels::cpu {

enum class stream_kind { threaded, immediate };

class stream {
 public:
  explicit stream(stream_kind kind);
  ~stream();  ///< finishes the queue first
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  void enqueue(std::function<void()> work);

  /// Returns when all that was enqueued has run; throws the first exception since the last
  /// synchronize(). Work behind a failure runs nevertheless, so that nobody waits for it in vain.
  void synchronize();

 private:
  void serve();
  void run(const std::function<void()>& work);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;  ///< its front is running
  bool closed_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace attnsim::kernels::cpu
