// How ranks exchange data: what a schedule's communication operations run on.
//
// A channel joins a group of ranks and belongs to one stream of the back end. Its operations are
// enqueued and return at once; they run in stream order, beside those of other streams, and the
// memory they name must last until they have run. All members enqueue the same operations in the
// same order; a sender's bytes are its receiver's. Ranks are named by their place in the group.
//
// Why several streams do not deadlock: each channel matches its own operations alone, never those
// of another, so an operation waits only for its members to reach it, as the simulator has it. So a
// group that communicates on two streams opens two channels. A NCCL channel is a communicator from
// ncclCommSplit whose kernels go into native_stream(). The transports of hosts wait inside
// backend::call(), so they need a back end whose streams don't wait for each other's calls, as the
// CPU's and unlike CUDA's.
//
// Failures: an operation whose peers don't come within the time-out fails, and with it, at once,
// all later ones of the rank: transport_error from the stream's next synchronize().
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.hpp"

namespace attnsim::validate {

/// One line: "rank 3, operation 17 (shift): nothing from rank 2 within 10 s".
class transport_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One tensor's share of an operation, dense. A slot is what one member contributes or receives.
struct payload {
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t slot_bytes = 0;
  data_type type = data_type::fp32;  ///< of the elements that reductions sum
};

/// `what` names the operation in errors, as "operation 17 (shift)". The payloads of one call travel
/// together.
class channel {
 public:
  virtual ~channel() = default;

  /// One slot to a member, one from a member; the place is the own one for neither.
  virtual void send_receive(const std::string& what, int to, int from,
                            std::span<const payload>) = 0;
  /// The own slot to all; their slots in order of place.
  virtual void all_gather(const std::string& what, std::span<const payload>) = 0;
  /// A slot for every member; the sum of all members' slots for this one.
  virtual void reduce_scatter(const std::string& what, std::span<const payload>) = 0;
  /// Slot i to member i; slot j from member j.
  virtual void all_to_all(const std::string& what, std::span<const payload>) = 0;
  /// The own slot; the sum of all members' slots.
  virtual void all_reduce(const std::string& what, std::span<const payload>) = 0;
};

using blob = std::vector<std::byte>;

class transport {
 public:
  virtual ~transport() = default;
  virtual std::string_view name() const = 0;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  /// This rank's number among those of its host.
  virtual int local_rank() const { return rank(); }
  virtual int local_ranks() const { return ranks(); }

  /// All ranks open their channels in the same order; a rank is in one group at a time.
  /// `group` lists the members, this rank among them, by place. `nccl_channels`: how many of
  /// NCCL's channels, each on a multiprocessor, an operation has at most; 0: the transport's choice.
  virtual std::unique_ptr<channel> open(kernels::backend&, kernels::stream_id,
                                        const std::vector<int>& group, int nccl_channels) = 0;
  std::unique_ptr<channel> open(kernels::backend& device, kernels::stream_id stream,
                                const std::vector<int>& group) {
    return open(device, stream, group, 0);
  }

  // Between operations, from the host. All ranks call these in the same order; they return when all
  // have come and throw transport_error when some don't.

  /// Every rank's blob, by rank.
  virtual std::vector<blob> share(const blob& own) = 0;
  void barrier() { share({}); }

  /// What was just put on the stream as a whole, a graph, must be done within the time-out too. For
  /// transports whose operations wait outside the host; the others watch each by itself.
  virtual void watch(kernels::backend&, kernels::stream_id, const std::string&) {}

  /// What to add to this rank's steady clock to get rank 0's, in seconds.
  virtual double clock_offset() = 0;
};

}  // namespace attnsim::validate
