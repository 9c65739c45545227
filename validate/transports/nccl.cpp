#include "validate/transports/nccl.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <thread>

namespace attnsim::validate {
namespace {

using clock = std::chrono::steady_clock;

void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(fmt::format("{}: {}", what, cudaGetErrorString(error)));
}

ncclDataType_t to_nccl(data_type type) {
  return type == data_type::bf16   ? ncclBfloat16
         : type == data_type::fp16 ? ncclFloat16
                                   : ncclFloat32;
}

class nccl_channel;

const std::string joining = "joining of all ranks";

/// An operation that was enqueued and is not known to be done.
struct running {
  std::string what;
  ncclComm_t on;
  cudaEvent_t begin, end;
  clock::time_point ready;  ///< zero: its stream has not come to it
};

class nccl_transport final : public tcp_transport {
 public:
  nccl_transport(const nccl_options& options, const job_place& place)
      : tcp_transport(place, options.time_out), options_(options) {
    blob own;
    if (rank() == 0) {
      if (const auto result = ncclGetUniqueId(&id_); result != ncclSuccess)
        fail(joining, reason(result, nullptr));
      own.resize(sizeof id_);
      std::memcpy(own.data(), &id_, sizeof id_);
    }
    const auto first = share(own).at(0);
    std::memcpy(&id_, first.data(), sizeof id_);
  }

  ~nccl_transport() override {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    if (watch_.joinable()) watch_.join();
    if (failure_.empty()) close_communicators();
    for (const auto e : unused_events_) cudaEventDestroy(e);
  }

  std::string_view name() const override { return "nccl"; }

  using transport::open;
  std::unique_ptr<channel> open(kernels::backend&, kernels::stream_id,
                                const std::vector<int>& group, int nccl_channels) override;

  void exchange(int lane, const std::string& what, const std::vector<outgoing>& sends,
                const std::vector<incoming>& receives) override {
    {
      const std::lock_guard lock(mutex_);
      refuse_after_failure();
    }
    try {
      tcp_transport::exchange(lane, what, sends, receives);
    } catch (const transport_error&) {
      const std::lock_guard lock(mutex_);
      refuse_after_failure();  // what came first says more
      throw;
    }
  }

  /// Enqueues what `calls` calls of NCCL as one group.
  template <typename Calls>
  void run(const std::string& what, ncclComm_t on, cudaStream_t stream, const Calls& calls) {
    const std::lock_guard lock(mutex_);
    refuse_after_failure();
    const bool captured = is_capturing(stream);
    running r{what, on, event(), event(), {}};
    if (!captured) require(cudaEventRecord(r.begin, stream), "event");
    inside_nccl_since_ = clock::now().time_since_epoch().count();
    const auto started = ncclGroupStart();
    ncclResult_t called = ncclSuccess;
    if (started == ncclSuccess) called = calls();
    const auto ended = ncclGroupEnd();
    inside_nccl_since_ = 0;
    for (const auto result : {started, called, ended}) {
      if (result != ncclSuccess && result != ncclInProgress) give_up(what, reason(result, on));
    }
    settle(on, what);
    if (captured) return keep(r);
    require(cudaEventRecord(r.end, stream), "event");
    running_.push_back(std::move(r));
  }

  void watch(kernels::backend& device, kernels::stream_id stream,
             const std::string& what) override {
    const std::lock_guard lock(mutex_);
    if (!world_) return;
    running r{what, world_, event(), event(), clock::now()};
    const auto on = static_cast<cudaStream_t>(device.native_stream(stream));
    for (const auto e : {r.begin, r.end}) require(cudaEventRecord(e, on), "event");
    running_.push_back(std::move(r));
  }

  /// The members of a communicator and the channels it may have.
  using members = std::pair<std::vector<int>, int>;

  void close(const nccl_channel& c, const members& group, ncclComm_t comm);

 private:
  // All of these with the mutex held.

  cudaEvent_t event() {
    cudaEvent_t e = nullptr;
    if (unused_events_.empty()) {
      require(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "event");
    } else {
      e = unused_events_.back();
      unused_events_.pop_back();
    }
    return e;
  }

  void keep(const running& done) {
    unused_events_.insert(unused_events_.end(), {done.begin, done.end});
  }

  static bool is_capturing(cudaStream_t stream) {
    auto status = cudaStreamCaptureStatusNone;
    require(cudaStreamIsCapturing(stream, &status), "capture");
    return status != cudaStreamCaptureStatusNone;
  }

  void refuse_after_failure() {
    if (failure_.empty()) return;
    noticed_ = true;
    changed_.notify_all();
    throw transport_error(failure_);
  }

  static std::string reason(ncclResult_t result, ncclComm_t comm) {
    return fmt::format("NCCL: {} ({})", ncclGetErrorString(result), ncclGetLastError(comm));
  }

  /// Waits until NCCL has done its part on the host: peers connected, kernels enqueued.
  void settle(ncclComm_t comm, const std::string& what) {
    const auto from = clock::now();
    ncclResult_t state = ncclInProgress;
    for (int turn = 1;; ++turn) {
      const auto asked = ncclCommGetAsyncError(comm, &state);
      if (asked != ncclSuccess) give_up(what, reason(asked, comm));
      if (state == ncclSuccess) return;
      if (state != ncclInProgress) give_up(what, reason(state, comm));
      std::this_thread::yield();  // NCCL's threads may be bound to the same core
      if (turn % 256 != 0) continue;
      const std::chrono::duration<double> passed = clock::now() - from;
      if (passed > options_.time_out) give_up(what, late());
      if (passed > grace && lost_rank() >= 0)
        give_up(what, fmt::format("rank {} has ended", lost_rank()));
    }
  }

  std::string late() const {
    return fmt::format("a peer has not come within {:g} s", options_.time_out.count());
  }

  [[noreturn]] void give_up(const std::string& what, const std::string& why) {
    end_all(what, why);
    refuse_after_failure();
    std::abort();  // not reached
  }

  void end_all(const std::string& what, const std::string& why);
  void make_world();
  ncclComm_t split(const members& group, int place);
  void close_communicators();

  // The thread that watches.

  void watch() {
    cudaSetDevice(device_);
    std::unique_lock lock(mutex_, std::defer_lock);
    while (true) {
      end_if_stuck();
      if (!lock.try_lock_for(interval)) continue;
      if (closed_) return;
      if (!failure_.empty()) return await_notice(lock);
      inspect();
      changed_.wait_for(lock, interval, [&] { return closed_; });
      lock.unlock();
    }
  }

  /// A call of a blocking communicator cannot be given up: its peers have not connected.
  void end_if_stuck() const {
    const auto since = clock::time_point(clock::duration(inside_nccl_since_.load()));
    if (since == clock::time_point{} || clock::now() - since < options_.time_out) return;
    end_process(fmt::format("rank {}, a call of NCCL: {}", rank(), late()));
  }

  /// Where the aborts don't bring the host's thread back, the process ends.
  void await_notice(std::unique_lock<std::timed_mutex>& lock) {
    const bool noticed =
        changed_.wait_for(lock, options_.time_out, [&] { return closed_ || noticed_; });
    if (!noticed) end_process(failure_);
  }

  [[noreturn]] static void end_process(const std::string& line) {
    fmt::print(stderr, "{}\n", line);
    std::fflush(stderr);
    std::_Exit(1);
  }

  void inspect() {
    for (auto r = running_.begin(); r != running_.end();) {
      const bool done = cudaEventQuery(r->end) == cudaSuccess;
      if (!done && is_failed(*r)) return;
      if (done) keep(*r);
      r = done ? running_.erase(r) : std::next(r);
    }
    if (running_.empty()) lost_since_ = {};
  }

  bool is_failed(running& r) {
    const auto now = clock::now();
    if (r.ready == clock::time_point{}) {
      if (cudaEventQuery(r.begin) != cudaSuccess) return false;
      r.ready = now;
    }
    ncclResult_t state = ncclSuccess;
    if (ncclCommGetAsyncError(r.on, &state) == ncclSuccess && state != ncclSuccess &&
        state != ncclInProgress) {
      return end_all(r.what, reason(state, r.on)), true;
    }
    if (now - r.ready > options_.time_out) return end_all(r.what, late()), true;
    if (const int lost = lost_rank(); lost >= 0) {  // or has it done its part and gone?
      if (lost_since_ == clock::time_point{}) lost_since_ = now;
      if (now - lost_since_ > grace)
        return end_all(r.what, fmt::format("rank {} has ended", lost)), true;
    }
    return false;
  }

  static constexpr std::chrono::milliseconds interval{5};
  static constexpr std::chrono::duration<double> grace{2.0};

  nccl_options options_;
  ncclUniqueId id_{};
  int device_ = 0;
  std::timed_mutex mutex_;
  std::condition_variable_any changed_;
  bool closed_ = false;
  bool noticed_ = false;  ///< somebody was told of the failure
  std::atomic<clock::rep> inside_nccl_since_ = 0;
  std::string failure_;
  ncclComm_t world_ = nullptr;
  std::list<ncclComm_t> communicators_;
  std::map<members, std::vector<ncclComm_t>> unused_;
  std::deque<running> running_;
  std::vector<cudaEvent_t> unused_events_;
  std::vector<nccl_channel*> channels_;
  clock::time_point lost_since_;
  std::thread watch_;
};

class nccl_channel final : public channel {
 public:
  nccl_channel(nccl_transport& t, kernels::backend& device, kernels::stream_id on,
               nccl_transport::members group, int place, ncclComm_t comm)
      : transport_(t),
        device_(device),
        on_(on),
        stream_(static_cast<cudaStream_t>(device.native_stream(on))),
        group_(std::move(group)),
        place_(place),
        comm_(comm) {}
  ~nccl_channel() override { transport_.close(*this, group_, comm_); }

  void send_receive(const std::string& what, int to, int from,
                    std::span<const payload> parts) override {
    run(what, [&] {
      ncclResult_t result = ncclSuccess;
      for (const auto& p : parts) {
        if (to != place_)
          keep(result, ncclSend(p.from, p.slot_bytes, ncclInt8, to, comm_, stream_));
        if (from != place_)
          keep(result, ncclRecv(p.to, p.slot_bytes, ncclInt8, from, comm_, stream_));
      }
      return result;
    });
  }

  void all_gather(const std::string& what, std::span<const payload> parts) override {
    run(what, [&] {
      ncclResult_t result = ncclSuccess;
      for (const auto& p : parts)
        keep(result, ncclAllGather(p.from, p.to, p.slot_bytes, ncclInt8, comm_, stream_));
      return result;
    });
  }

  void reduce_scatter(const std::string& what, std::span<const payload> parts) override {
    run(what, [&] {
      ncclResult_t result = ncclSuccess;
      for (const auto& p : parts) {
        const auto count = p.slot_bytes / static_cast<std::size_t>(element_bytes(p.type));
        keep(result,
             ncclReduceScatter(p.from, p.to, count, to_nccl(p.type), ncclSum, comm_, stream_));
      }
      return result;
    });
  }

  void all_to_all(const std::string& what, std::span<const payload> parts) override {
    run(what, [&] {
      ncclResult_t result = ncclSuccess;
      for (const auto& p : parts) {
        for (int member = 0; member < static_cast<int>(group_.first.size()); ++member) {
          const auto skipped = static_cast<std::size_t>(member) * p.slot_bytes;
          keep(result, ncclSend(static_cast<const std::byte*>(p.from) + skipped, p.slot_bytes,
                                ncclInt8, member, comm_, stream_));
          keep(result, ncclRecv(static_cast<std::byte*>(p.to) + skipped, p.slot_bytes, ncclInt8,
                                member, comm_, stream_));
        }
      }
      return result;
    });
  }

  void all_reduce(const std::string& what, std::span<const payload> parts) override {
    run(what, [&] {
      ncclResult_t result = ncclSuccess;
      for (const auto& p : parts) {
        const auto count = p.slot_bytes / static_cast<std::size_t>(element_bytes(p.type));
        keep(result, ncclAllReduce(p.from, p.to, count, to_nccl(p.type), ncclSum, comm_, stream_));
      }
      return result;
    });
  }

  /// The stream's next synchronize() throws.
  void fail(const std::string& line) {
    device_.call(on_, [line] { throw transport_error(line); });
  }

 private:
  template <typename Calls>
  void run(const std::string& what, const Calls& calls) {
    if (group_.first.size() == 1) throw std::logic_error("a group of one has nobody to talk to");
    transport_.run(what, comm_, stream_, calls);
  }

  /// The first failure of a group's calls; those of a non-blocking communicator are in progress.
  static void keep(ncclResult_t& first, ncclResult_t next) {
    if (first == ncclSuccess && next != ncclInProgress) first = next;
  }

  nccl_transport& transport_;
  kernels::backend& device_;
  kernels::stream_id on_;
  cudaStream_t stream_;
  nccl_transport::members group_;
  int place_;
  ncclComm_t comm_;  ///< none in a group of one
};

// --- Communicators --------------------------------------------------------------------------------

ncclConfig_t configuration(bool blocking, int channels) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking ? 1 : 0;
  config.splitShare = 0;
  if (channels > 0) {
    config.minCTAs = 1;
    config.maxCTAs = channels;
  }
  return config;
}

void nccl_transport::make_world() {
  auto config = configuration(options_.blocking, options_.channels);
  auto& made = communicators_.emplace_back();
  inside_nccl_since_ = clock::now().time_since_epoch().count();
  const auto result = ncclCommInitRankConfig(&made, ranks(), id_, rank(), &config);
  inside_nccl_since_ = 0;
  if (result != ncclSuccess && result != ncclInProgress) give_up(joining, reason(result, nullptr));
  settle(made, joining);
  world_ = made;
  std::vector<int> everyone;
  for (int r = 0; r < ranks(); ++r) everyone.push_back(r);
  unused_[{everyone, options_.channels}].push_back(world_);
}

ncclComm_t nccl_transport::split(const members& group, int place) {
  const std::string what = "split of communicators";
  auto config = configuration(options_.blocking, group.second);
  const int colour = *std::min_element(group.first.begin(), group.first.end());
  auto& made = communicators_.emplace_back();  // NCCL writes it when the split is done
  inside_nccl_since_ = clock::now().time_since_epoch().count();
  const auto result = ncclCommSplit(world_, colour, place, &made, &config);
  inside_nccl_since_ = 0;
  if (result != ncclSuccess && result != ncclInProgress) give_up(what, reason(result, world_));
  settle(world_, what);
  settle(made, what);
  return made;
}

std::unique_ptr<channel> nccl_transport::open(kernels::backend& device, kernels::stream_id stream,
                                              const std::vector<int>& group, int nccl_channels) {
  const std::lock_guard lock(mutex_);
  refuse_after_failure();
  if (!device.native_stream(stream)) {
    throw std::runtime_error(
        fmt::format("transport nccl: a {} device has no CUDA streams", device.name()));
  }
  const auto place =
      static_cast<int>(std::find(group.begin(), group.end(), rank()) - group.begin());
  const members wanted{group, nccl_channels > 0 ? nccl_channels : options_.channels};
  ncclComm_t comm = nullptr;
  if (group.size() > 1) {
    if (!watch_.joinable()) {
      require(cudaGetDevice(&device_), "device");
      watch_ = std::thread([this] { watch(); });
      make_world();
    }
    auto& unused = unused_[wanted];
    if (unused.empty()) {
      comm = split(wanted, place);
    } else {
      comm = unused.back();
      unused.pop_back();
    }
  }
  auto made = std::make_unique<nccl_channel>(*this, device, stream, wanted, place, comm);
  channels_.push_back(made.get());
  return made;
}

void nccl_transport::close(const nccl_channel& c, const members& group, ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  std::erase(channels_, &c);
  if (comm) unused_[group].push_back(comm);
}

void nccl_transport::end_all(const std::string& what, const std::string& why) {
  if (!failure_.empty()) return;
  failure_ = fmt::format("rank {}, {}: {}", rank(), what, why);
  for (auto* c : channels_) c->fail(failure_);
  // At once: an abort frees memory, which waits for all kernels of the device, those of other
  // communicators included.
  for (const auto comm : communicators_) {
    if (comm) std::thread([comm] { ncclCommAbort(comm); }).detach();
  }
  hang_up();
}

void nccl_transport::close_communicators() {
  cudaSetDevice(device_);
  const auto until = clock::now() + std::chrono::duration_cast<clock::duration>(options_.time_out);
  for (auto comm = communicators_.rbegin(); comm != communicators_.rend(); ++comm) {
    ncclResult_t state = ncclCommFinalize(*comm);
    while ((state == ncclSuccess || state == ncclInProgress) && clock::now() < until) {
      if (ncclCommGetAsyncError(*comm, &state) != ncclSuccess || state == ncclSuccess) break;
    }
    state == ncclSuccess ? ncclCommDestroy(*comm) : ncclCommAbort(*comm);
  }
}

}  // namespace

std::unique_ptr<transport> join_nccl(const nccl_options& options, const job_place& place) {
  return std::make_unique<nccl_transport>(options, place);
}

bool has_nccl() {
  return true;
}

std::string nccl_version() {
  int version = 0;
  ncclGetVersion(&version);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace attnsim::validate
