// The memory of one rank's buffers, as model/cost/memory.hpp counts it: resident buffers and
// scratch for the whole pass, a working buffer from the first operation that touches it, in launch
// order, to the last.
//
// A launched operation has not run yet, so the memory that its buffers leave is given back only
// when room is needed: up to the counted peak nothing waits, at the peak the launch waits for the
// operations that used the oldest buffers left.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "kernels/backend.hpp"
#include "model/cost/memory.hpp"

namespace attnsim::validate {

class device_memory {
 public:
  /// `await`: returns when the operation has run. Without it no memory is used twice, and all is there from the start.
  /// `given`: where some resident buffers lie already; they are left there.
  device_memory(const workload&, kernels::backend&, std::function<void(std::size_t op)> await,
                std::map<int, std::byte*> given = {});
  ~device_memory();
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  /// Makes room for what program[op] is the first to touch; to be called before its launch.
  void enter(std::size_t op);
  /// Notes what program[op] was the last to touch; to be called after its launch.
  void leave(std::size_t op);

  std::byte* of(int buffer) const { return buffers_[static_cast<std::size_t>(buffer)].data; }
  std::byte* scratch() const { return scratch_; }

  /// The most that was allocated at once.
  byte_count peak() const { return peak_; }

 private:
  struct lifetime {
    std::byte* data = nullptr;
    std::vector<std::size_t> operations;  ///< that touch it
  };
  struct leftover {
    std::byte* data;
    byte_count size;
    std::vector<std::size_t> operations;
  };

  std::byte* allocate(byte_count);
  void release_oldest();
  bool is_working(std::size_t buffer) const;

  const workload& work_;
  kernels::backend& device_;
  std::function<void(std::size_t)> await_;
  byte_count limit_;  ///< the counted peak
  byte_count held_, peak_;
  std::map<int, std::byte*> given_;
  std::vector<lifetime> buffers_;
  std::deque<leftover> left_;
  std::byte* scratch_ = nullptr;
};

}  // namespace attnsim::validate
