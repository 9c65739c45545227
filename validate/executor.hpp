// Runs a schedule: the kernels of a back end, the messages of a transport.
//
// One executor a rank. The program's streams are streams of the back end; operations are enqueued
// in program order and tied together by events where `needs` says so, so what overlaps is decided
// by the device. Each operation is timed from when its stream came to it and all it needs was done
// until it was done: waiting for a peer counts, as in the simulator. All ranks start together and
// their times are from that moment.
#pragma once

#include <cstdint>

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

}  // namespace attnsim::validate
