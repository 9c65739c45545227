// Transports between processes or threads of hosts: all of transport.hpp from one primitive, a
// grouped exchange of messages that blocks.
//
//   all_gather      ring: n - 1 steps, each passes one slot on to the next member
//   reduce_scatter  ring: n - 1 steps, partial sums travel to the member that keeps them
//   all_to_all      one exchange with all members at once
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "validate/transport.hpp"

namespace attnsim::validate {

struct outgoing {
  int to = 0;  ///< rank
  const void* data = nullptr;
  std::size_t bytes = 0;
};

struct incoming {
  int from = 0;  ///< rank
  void* data = nullptr;
  std::size_t bytes = 0;
};

class host_transport : public transport {
 public:
  explicit host_transport(std::chrono::duration<double> time_out) : time_out_(time_out) {}

  using transport::open;
  std::unique_ptr<channel> open(kernels::backend&, kernels::stream_id,
                                const std::vector<int>& group, int nccl_channels) override;
  std::vector<blob> share(const blob& own) override;
  double clock_offset() override;

  /// Sends and receives all of these messages. Messages of one lane between two ranks arrive in the
  /// order in which they were sent; lanes know nothing of each other, and each is used by one
  /// thread at a time. transport_error names `what` and the rank that did not come.
  virtual void exchange(int lane, const std::string& what, const std::vector<outgoing>&,
                        const std::vector<incoming>&) = 0;

 protected:
  std::chrono::duration<double> time_out() const { return time_out_; }

  /// "rank 3, WHAT: WHY"
  [[noreturn]] void fail(const std::string& what, const std::string& why) const;
  /// "nothing from rank 2 within 10 s"
  std::string nothing_from(int rank) const;

 private:
  static constexpr int control = 0;

  void send(const std::string& what, int to, const blob&);
  blob receive(const std::string& what, int from);

  std::chrono::duration<double> time_out_;
  int lanes_ = control + 1;
};

}  // namespace attnsim::validate
