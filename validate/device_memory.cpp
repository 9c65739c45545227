#include "validate/device_memory.hpp"

#include <algorithm>

namespace attnsim::validate {

device_memory::device_memory(const workload& w, kernels::backend& device,
                             std::function<void(std::size_t)> await,
                             std::map<int, std::byte*> given)
    : work_(w),
      device_(device),
      await_(std::move(await)),
      limit_(peak_memory(w).peak),
      given_(std::move(given)),
      buffers_(w.program().buffers.size()) {
  const auto& program = w.program().program;
  for (std::size_t op = 0; op < program.size(); ++op) {
    for (const auto* list : {&program[op].reads, &program[op].writes}) {
      for (const auto& o : *list) {
        auto& touching = buffers_[static_cast<std::size_t>(o.buffer)].operations;
        if (touching.empty() || touching.back() != op) touching.push_back(op);
      }
    }
  }
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    const auto& buffer = w.program().buffers[b];
    if (const auto found = given_.find(static_cast<int>(b)); found != given_.end())
      buffers_[b].data = found->second;
    else if (buffer.resident || (!await_ && !buffers_[b].operations.empty()))
      buffers_[b].data = allocate(w.bytes(buffer));
  }
  if (const auto size = w.scratch_bytes(); size > byte_count()) scratch_ = allocate(size);
}

device_memory::~device_memory() {
  for (const auto& one : left_) device_.free(one.data);
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    if (buffers_[b].data && !given_.contains(static_cast<int>(b))) device_.free(buffers_[b].data);
  }
  if (scratch_) device_.free(scratch_);
}

bool device_memory::is_working(std::size_t b) const {
  return !work_.program().buffers[b].resident;
}

void device_memory::enter(std::size_t op) {
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    auto& one = buffers_[b];
    if (one.data || !is_working(b) || one.operations.empty() || one.operations.front() != op)
      continue;
    one.data = allocate(work_.bytes(work_.program().buffers[b]));
  }
}

void device_memory::leave(std::size_t op) {
  if (!await_) return;
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    auto& one = buffers_[b];
    if (!is_working(b) || one.operations.empty() || one.operations.back() != op) continue;
    left_.push_back({one.data, work_.bytes(work_.program().buffers[b]), one.operations});
    one.data = nullptr;
  }
}

std::byte* device_memory::allocate(byte_count size) {
  while (await_ && held_ + size > limit_ && !left_.empty()) release_oldest();
  held_ += size;
  peak_ = std::max(peak_, held_);
  return static_cast<std::byte*>(device_.allocate(static_cast<std::size_t>(size.value())));
}

void device_memory::release_oldest() {
  const auto one = std::move(left_.front());
  left_.pop_front();
  for (const auto op : one.operations) await_(op);
  device_.free(one.data);
  held_ -= one.size;
}

}  // namespace attnsim::validate
