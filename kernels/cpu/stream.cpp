#include "kernels/cpu/stream.hpp"

#include <utility>

namespace attnsim::kernels::cpu {

stream::stream(stream_kind kind) {
  if (kind == stream_kind::threaded) thread_ = std::thread(&stream::serve, this);
}

stream::~stream() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void stream::enqueue(std::function<void()> work) {
  if (!thread_.joinable()) return run(work);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void stream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty(); });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void stream::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const auto& work = queue_.front();
    lock.unlock();
    run(work);
    lock.lock();
    queue_.pop_front();
    if (queue_.empty()) changed_.notify_all();
  }
}

void stream::run(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

}  // namespace attnsim::kernels::cpu
