// Runs a schedule: the kernels of a back end, the messages of a transport.
//
// One executor a rank. The program's streams are streams of the back end; operations are enqueued
// in program order and tied together by events where `needs` says so, so what overlaps is decided
// by the device. Each operation is timed from when its stream came to it and all it needs was done
// until it was done: waiting for a peer counts, as in the simulator. All ranks start together and
// their times are from that moment.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "model/cost/workload.hpp"
#include "sim/timeline.hpp"
#include "validate/shard.hpp"
#include "validate/transport.hpp"

namespace attnsim::validate {

/// Told, on the thread that enqueues, between which calls of the back end an operation that stays
/// on the rank lies.
class local_observer {
 public:
  virtual ~local_observer() = default;
  virtual void begin(kernels::stream_id, std::size_t op) = 0;
  virtual void end(kernels::stream_id, std::size_t op) = 0;
};

/// How a run reaches the device. Only the first uses memory twice, so the peak of the others is above the counted one.
enum class launch_mode : std::uint8_t {
  counted,  ///< one operation after the other; the host waits where memory would exceed the counted peak
  ahead,  ///< one operation after the other; the host waits for nothing
  graph,  ///< captured, then launched as one; after another run, in which communicators connect
};

struct execution {
  timeline times;              ///< of all ranks; a class a rank
  std::vector<shard> results;  ///< this rank's: o and lse, or d_q, d_k and d_v
  byte_count peak_memory;      ///< on this rank
};

class executor {
 public:
  /// References are kept. All ranks make their executors in the same order.
  executor(const workload&, transport&, kernels::backend&, local_observer* = nullptr);

  /// Runs the program once; again and again if called so. `input` makes the rank's own shards that
  /// the program reads before it writes them. All ranks call it together. transport_error, what the
  /// back end throws, and std::invalid_argument for an input of another size than its buffer.
  execution run(const shard_source& input, launch_mode mode = launch_mode::counted);

  /// The same for the sake of its times: every input is a copy of what lies at `input`, in host or device memory, as large
  /// as the largest of them; results are left behind.
  timeline time(const void* input, launch_mode mode = launch_mode::ahead);

 private:
  class pass;
  friend class enqueued_pass;

  int lane_of(const operation&) const;

  const workload& work_;
  transport& transport_;
  kernels::backend& device_;
  local_observer* observer_;
  double clock_offset_;
  std::vector<kernels::stream_id> streams_;
  std::vector<std::pair<int, axis_set>> lanes_;  ///< stream and axes of each channel
  std::vector<std::unique_ptr<channel>> channels_;
};

/// The program among other work of its device, again and again: its memory stays, ranks don't meet first, nothing is timed.
class enqueued_pass {
 public:
  /// `before`: the pass that left what this one starts from, as forward does for backward; it stays where it lies. References are
  /// kept. Throws infeasible unless all else that it reads, and its results, are of the rank's own tokens and all heads of its share.
  explicit enqueued_pass(executor&, const enqueued_pass* before = nullptr);
  ~enqueued_pass();
  enqueued_pass(const enqueued_pass&) = delete;
  enqueued_pass& operator=(const enqueued_pass&) = delete;

  /// Where the rank's shard of an input or a result lies, and what it is made of. std::out_of_range for another tensor.
  kernels::device_tensor at(tensor) const;
  kernels::token_shape shape(tensor) const;
  const token_set& tokens() const { return tokens_; }

  /// Behind what `on` has so far; what it gets next waits for the program's end.
  void enqueue(kernels::stream_id on);

 private:
  bool is_own_shard(const operand&) const;
  /// Where a resident buffer like this one, of this program or before, lies; nullptr: there is none.
  std::byte* address_like(const schedule&, const operand&) const;
  void take(const operand&);

  executor& executor_;
  token_set tokens_;
  std::map<tensor, operand> own_;
  std::unique_ptr<executor::pass> pass_;
};

}  // namespace attnsim::validate
